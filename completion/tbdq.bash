# SPDX-License-Identifier: MIT
# bash completion for tbdq and tbd; the words come from `tbdq --complete`, so from the table of commands.
_tbdq_traces() {
    local root=${TBD_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/tbd}
    mapfile -t COMPREPLY < <(cd "$root" 2>/dev/null && compgen -d -- "$1")
}
_tbdq() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} options=() words=() i
    case $prev in
        -t | --trace) _tbdq_traces "$cur"; return ;;
        --at) mapfile -t COMPREPLY < <(compgen -W "first last current" -- "$cur"); return ;;
        -f | --file) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
        -j | --workers | --thread | --since | --until | --shard | --source-map) return ;;
    esac
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
            -t | --trace | --at | --thread | --since | --until | --shard | --source-map | -f | --file | -j | --workers)
                [[ ${COMP_WORDS[i]} == -t || ${COMP_WORDS[i]} == --trace ]] && options=(-t "${COMP_WORDS[i + 1]}")
                i=$((i + 1)) ;;
            -*) ((${#words[@]})) && words+=("${COMP_WORDS[i]}") ;;
            *) words+=("${COMP_WORDS[i]}") ;;
        esac
    done
    if [[ $cur == -* && ${#words[@]} == 0 ]]; then
        mapfile -t COMPREPLY < <(compgen -W "-t --trace --at --thread --since --until --shard --wall --json --csv -f --file -j --workers --att --source-map --explain --no-cache -q --quiet --help --version" -- "$cur")
        return
    fi
    local line="${words[*]}${words[*]:+ }$cur" word
    # What is completed may be the end of a word only: `item->na`.
    word=${line##*[^[:alnum:]_:\$@]}
    mapfile -t COMPREPLY < <(tbdq "${options[@]}" --complete "$line" 2>/dev/null)
    COMPREPLY=("${COMPREPLY[@]/#/${cur%"$word"}}")
}
complete -F _tbdq tbdq
_tbd() {
    local cur=${COMP_WORDS[COMP_CWORD]}
    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "record crash dump set arm probe stop help --help --version" -- "$cur")
    elif [[ $cur == --* && " ${COMP_WORDS[*]:1:COMP_CWORD-1} " != *" -- "* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(tbd --help | sed -n 's/^  \(--[a-z0-9-]*=\{0,1\}\).*/\1/p')" -- "$cur")
        compopt -o nospace 2>/dev/null
    else
        mapfile -t COMPREPLY < <(compgen -c -f -- "$cur")
    fi
}
complete -F _tbd tbd
