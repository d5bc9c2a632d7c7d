// SPDX-License-Identifier: MIT
/* value_words.c - see value_words.h */
#include "query/commands/value_words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool choose(const struct tbd_value_option *option, const char *word)
{
    for (unsigned i = 0; i < option->name_count; i++)
        if (option->names[i] != NULL && strcmp(option->names[i], word) == 0) {
            *option->chosen = i;
            return true;
        }
    return false;
}

static const char *take_option(const struct tbd_value_option *options, const char *name, char *word,
                               struct tbd_value_words *out)
{
    if (strcmp(name, "--library") == 0) {
        if (out->more_count == TBD_CALL_GRAPH_FILES)
            return "that are too many libraries";
        out->more[out->more_count++] = word;
        return NULL;
    }
    for (; options->name != NULL; options++) {
        if (strcmp(options->name, name) != 0)
            continue;
        if (options->names != NULL)
            return choose(options, word) ? NULL : options->wrong;
        *options->text = word;
        return NULL;
    }
    return "there is no such option";
}

bool tbd_value_word_take(const char *word, uint64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoull(word, &end, strncmp(word, "0x", 2) == 0 ? 0 : 16);
    return *word != '-' && *word != '+' && end != word && *end == '\0' && errno == 0;
}

const char *tbd_value_words_take(const struct tbd_command_run *run,
                                 const struct tbd_value_option *options,
                                 struct tbd_value_words *out)
{
    const char *wrong = NULL;

    *out = (struct tbd_value_words){ .has_value = false };
    for (unsigned i = 0; wrong == NULL && i < run->argc; i++) {
        const char *word = run->argv[i];

        if (strncmp(word, "--", 2) == 0) {
            if (++i == run->argc)
                return "an option needs a value";
            wrong = take_option(options, word, run->argv[i], out);
        } else {
            if (out->has_value || !tbd_value_word_take(word, &out->value))
                return "VALUE is one hexadecimal number of at most 16 digits";
            out->has_value = true;
        }
    }
    return wrong;
}
