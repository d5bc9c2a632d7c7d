// SPDX-License-Identifier: MIT
/* command_table.c - the table of commands, and which of them shards and crash dumps answer */
#include "query/commands/commands.h"

#include <string.h>

// clang-format off
const struct tbd_command tbd_commands[] = {
    { "ls", tbd_command_ls, "",
      "the traces of the trace root",
      "Name, start, how it ended, block entries, size on disk, command line; the newest one last.",
      "tbdq ls", false, true, false },
    { "rm", tbd_command_rm, "NAME...",
      "remove traces",
      "Names are those of ls.  One that is being recorded is refused.  `latest` leads to the newest one\n"
      "that is left.",
      "tbdq rm gzip-1 gzip-2", false, true, true },
    { "pack", tbd_command_pack, "[--sources] FILE",
      "make one file of a trace, with all that questions need on another machine",
      "Program, libraries and debug files are in it; with --sources also the source files that the debug information\n"
      "names, as they are now.  Debug files that are not here are asked from $DEBUGINFOD_URLS, if libdebuginfod is installed.\n"
      "Any command opens it as it is: tbdq -t FILE; it is unpacked into the user's cache then.  tar --zstd reads it, too.",
      "tbdq -t gzip-1 pack gzip.tbd", false, false, true },
    { "unpack", tbd_command_unpack, "FILE [FOLDER]",
      "make a trace's folder again from a packed one",
      "In the trace root, named as the file is, or as FOLDER, which must not exist.",
      "tbdq unpack gzip.tbd", false, true, true },
    { "du", tbd_command_du, "",
      "what the trace takes on disk, by what it is for",
      "Bytes as the file system counts them.  Modules are shared by the traces of one trace root.",
      "tbdq du", false, false, false },
    { "facts", tbd_command_facts, "[NAME]",
      "what the system said about a program when it died (mode=crash)",
      "Its command line, environment, limits, memory, maps, open files, the system's load, mounts.",
      "tbdq facts files", false, false, false },
    { "path", tbd_command_path,
      "[COUNT] [blocks|insns] [first|last|merged|parts|part NAME] [fold] [text] [regs] [thread ID] [from -N[+K] [forward]] [--values [--only NAMES] [--variables] [--exact] [--why]] [--where EXPR]",
      "what a program died of, and what its threads ran last (mode=crash)",
      "First the signal, why it came, the address, the thread and its instruction, with `regs` also its registers.\n"
      "The last COUNT rows (40) of each thread; the one that died last.  A row is a run of instructions at one\n"
      "source line, or one block (`blocks`), or one instruction with its text (`insns`).  `back` is its position: -N for the\n"
      "N-th block before the thread's end, -N+K for instruction K in it.  `fold` shows a loop of rows once, with how many\n"
      "rows it has and how often it ran; `text` adds the source line.  `from -N` shows the rows up to there, with\n"
      "`forward` those from there on (-N+K: from the row on that has this instruction).  Without -t: the newest dump.\n"
      "`merged` shows the last COUNT rows of all threads together.  A row ran after those above it, but for those of the threads\n"
      "in `beside`: which of the two was first nobody knows.  All rows of a `group` ran before those of the next one, where\n"
      "threads are named or not.  System calls order threads, and what else is recorded: --record=5 does more.\n"
      "`first` shows, in place of threads, all blocks that ran, in the order of their first entry, with its time, `last` by the last\n"
      "entry (with the time of the end of its lap of a ring): a table each, if the program was started with --tables.\n"
      "`parts` shows what was kept of modules and functions that --parts names, for longer than in the rings; `part NAME`\n"
      "that of one: `part modules` where another module was entered.\n"
      "`--values` shows what rows held: with `insns` the registers and memory of each, else the variables that the source line\n"
      "names, before the row and, if they changed, after it; inferred values rest on an assumption, which `--why` names;\n"
      "with `--exact` none is made, and what would rest on one is unknown.\n"
      "`--only a,*p,rax,0x1000-0x1fff` shows these expressions, registers and addresses alone; `--variables` shows of an\n"
      "instruction the variables that its line names, without registers and temporaries.  `--where EXPR` shows, of the\n"
      "rows, those at whose beginning it is true; where it is not known it is neither, and counted.\n"
      "In a dump, `goto`, `bt -N`, `calls`, `lines` and `count` answer from the rings, too; with --at -N, or after `goto -N`,\n"
      "`regs`, `mem`, `x`, `print` and `locals` show what is known there.",
      "tbdq path 20", false, true, false },
    { "branches", tbd_command_branches,
      "[VALUE] --program FILE --function [MODULE:]NAME [--tally counts|xor|sum|product] [--library FILE]",
      "the branches that a value of tbd_branch_context() stands for (mode=context)",
      "Which conditional jumps of the function had jumped when it got this value, and how often: with the tally counts up to what a\n"
      "field of the value holds, with product as long as 64 bits were enough, with xor only whether it was an odd number, with sum\n"
      "as ways through the function's code that have this sum (all that are found; with rounds of up to three loops).\n"
      "Without a value: the function's place, as the option `branches` of TBD_OPTIONS takes it; `tbd record --branches=NAME` does\n"
      "that by itself.  A function has up to 64 such jumps; what was moved out of it (NAME.cold) is not counted.",
      "tbdq branches 0x2900460001 --program app --function collatz", false, true, false },
    { "advise", tbd_command_advise, "[COUNT] [thread ID]",
      "what should be recorded so that more values before a crash are known (mode=crash)",
      "A dry run on the last COUNT (100000) instructions of a dump's thread: the percentage of register uses and memory\n"
      "operands that are known, would be with other settings of `tbd crash --record`, and if the results of the instructions were\n"
      "recorded in which most unknown values begin: each with those above it.  `uses` is how many lead back to it.",
      "tbdq advise", false, false, false },
    { "context", tbd_command_context,
      "[VALUE] [--program FILE] [--log TEXT] [--library FILE] [--scheme order|xor|sum] [--seconds N] [--values FILE] | --learn TRACE",
      "the stacks that a value of tbd_context() stands for (mode=context)",
      "The stacks of calls that have this value: those that recordings of the program had, if they were learned; or else from the\n"
      "calls that are in the program's and its libraries' code; none of it is run.  All are shown, those that begin at the program's\n"
      "start first; innermost call first.  With --log only those in which one of the three innermost functions has a string with\n"
      "TEXT.  --library (up to 60) names a file that the program loads by itself.  It tries 32 million calls, for N (10) seconds, at most.\n"
      "--values FILE instead of VALUE takes many at once, the first word of each line (-: standard input): the program is read once.\n"
      "--learn keeps the stacks that a recording had, in the user's cache, for this program (by its build id): they are\n"
      "found however the calls were made, also by pointer.\n"
      "Without --program the program and its libraries are those of the crash dump, whose threads' stacks are known, too; without\n"
      "VALUE the values of all its threads are decoded (--mode=crash,context).",
      "tbdq context 0x3630b3fdf0c92bb9 --program examples/context", false, true, false },
    { "info", tbd_command_info, "",
      "what the trace holds",
      "Program, arguments, how it ended, how many blocks, windows and events of each kind, sizes on\n"
      "disk, and what a processor must have beyond x86-64-v3 to replay all of its code.  Of a crash dump how\n"
      "much of each thread is there, and what is missing.",
      "tbdq info", false, false, false },
    { "windows", tbd_command_windows, "[FIRST [COUNT]]",
      "the windows: times, detail levels, sizes",
      "One line per window.  FIRST is a window number, from 0.",
      "tbdq windows 0 10", false, false, false },
    { "modules", tbd_command_modules, "",
      "files that were mapped executable",
      "As of the window of the current position.",
      "tbdq modules", true, false, false },
    { "processes", tbd_command_processes, "",
      "the traces of all processes that belong to this one",
      "A tree: what each process forked or started, among the traces in the same folder, from the\n"
      "first ancestor that was recorded.  A process that executes programs has a trace for each.\n"
      "The trace that is being asked is marked with '*'.",
      "tbdq processes", false, false, false },
    { "threads", tbd_command_threads, "",
      "the program's threads, and where each is at the current position",
      "Number, name, when and by which thread it was made, when it ended, its block entries, how often\n"
      "it was given control.  Threads run one at a time; '*' marks the one that has control.",
      "tbdq threads", true, false, false },
    { "thread", tbd_command_thread, "[N]",
      "show or select the thread that bt, frame, locals, print and regs are about",
      "N is a number of `tbdq threads` or an id.  Without a selection it is the thread that has control;\n"
      "so it is again after every move.",
      "tbdq thread 2", true, false, false },
    { "goto", tbd_command_goto, "first | last | TIME[+K] | HH:MM:SS | FUNCTION | FILE:LINE | *ADDRESS | FROM DIR TYPE COUNT [of EXPR] [where CONTEXT]",
      "move the current position",
      "FROM is current, first, last or TIME[+K]; DIR is forward or backward; TYPE is\n"
      "func_enter, func_exit, block_entry, store, load, syscall, thread_switch, line, signal or\n"
      "state (every instruction); COUNT is 1 for the next one, 2 for the one after it, ...\n"
      "FUNCTION (or \"*pattern*\"), FILE:LINE and *ADDRESS are where they are reached next, or were last; 09:35:53.5 or 2026-11-23T09:35 is\n"
      "where the program was by the clock on the wall.\n"
      "`then` goes on from what was found: goto last backward store of p then backward\n"
      "func_enter where func==insert.  A search looks strictly after (before) where it starts;\n"
      "first and last stand before the first and after the last event.  A store or load of\n"
      "EXPR touches the variable that this C expression denotes where the search starts.\n"
      "CONTEXT is a condition: see `tbdq help context`.  The state at an event is the one just\n"
      "before its instruction executes; a function is entered at its first instruction.  Exit\n"
      "status 1 if there is no such event.  In a crash dump: -N[+K] of `path`, first, last, FUNCTION or FILE:LINE [where EXPR], where\n"
      "they were last; it shows what ran there, and does not move.",
      "tbdq goto last backward store 1 where 'addr==&total and oldval < 100'", true, false, false },
    { "step", tbd_command_step, "[COUNT]",
      "to the next source line, also in called functions",
      "Where a statement of another line begins.  In a function that is called: after the set-up of its\n"
      "frame, where its variables are; functions without source lines are passed over.  Where the code of\n"
      "an inlined function begins, the frame of its caller is selected first, and the next step goes into it.",
      "tbdq step", true, false, false },
    { "next", tbd_command_next, "[COUNT]",
      "to the next source line of this function, or of its caller",
      "Passes over calls and inlined functions.",
      "tbdq next 3", true, false, false },
    { "finish", tbd_command_finish, "",
      "to the instruction after the return of this function",
      "Shows the return with its value, and moves to the instruction after the call.  If an exception or\n"
      "longjmp leaves the function, moves to where the program goes on.  In an inlined function, moves to\n"
      "the next statement outside of it.  After `up` it is the selected frame, or copy, that is left.",
      "tbdq finish", true, false, false },
    { "stepi", tbd_command_stepi, "[COUNT]",
      "to the next instruction", "",
      "tbdq stepi 10", true, false, false },
    { "nexti", tbd_command_nexti, "[COUNT]",
      "to the next instruction of this function, over calls", "",
      "tbdq nexti 10", true, false, false },
    { "reverse-step", tbd_command_reverse_step, "[COUNT]",
      "to the source line before, also in called functions",
      "From the middle of a line to the beginning of what was executed of it, from there to that of the line\n"
      "before; from a function's first line to its call.",
      "tbdq reverse-step", true, false, false },
    { "reverse-next", tbd_command_reverse_next, "[COUNT]",
      "to the source line before of this function, or of its caller", "",
      "tbdq reverse-next", true, false, false },
    { "reverse-finish", tbd_command_reverse_finish, "",
      "to the call of this function", "",
      "tbdq reverse-finish", true, false, false },
    { "reverse-stepi", tbd_command_reverse_stepi, "[COUNT]",
      "to the instruction before", "",
      "tbdq reverse-stepi", true, false, false },
    { "reverse-nexti", tbd_command_reverse_nexti, "[COUNT]",
      "to the instruction before in this function, over calls", "",
      "tbdq reverse-nexti", true, false, false },
    { "break", tbd_command_break, "PLACE [thread N] [if CONTEXT]",
      "stop there when `continue` gets there",
      "PLACE is a function, FILE:LINE, the number of a line in the current file, or *ADDRESS.  CONTEXT is a\n"
      "condition: see `tbdq help context`.  A function is entered at its first instruction,\n"
      "one that the compiler inlined at that of each copy.\n"
      "Breakpoints last as long as the prompt or the script.",
      "break insert if key > 10", true, false, false },
    { "tbreak", tbd_command_tbreak, "PLACE [thread N] [if CONTEXT]",
      "the same for one stop", "",
      "tbreak list.c:31", true, false, false },
    { "watch", tbd_command_watch, "EXPR [thread N] [if CONTEXT]",
      "stop at the instruction that changes a variable",
      "EXPR is a C expression at the current position; the bytes that it denotes now are watched, of\n"
      "any size, without a limit of number, in both directions.",
      "watch list->count", true, false, false },
    { "rwatch", tbd_command_rwatch, "EXPR [thread N] [if CONTEXT]",
      "stop at the instruction that reads a variable", "",
      "rwatch total", true, false, false },
    { "breakpoints", tbd_command_breakpoints, "",
      "the breakpoints and watched variables", "",
      "breakpoints", false, false, false },
    { "delete", tbd_command_delete, "[NUMBER ...]",
      "remove breakpoints; all, without a number", "",
      "delete 2", false, false, false },
    { "continue", tbd_command_continue, "[COUNT]",
      "go to the next breakpoint or change of a watched variable",
      "If none is reached: to the end of the recording, with exit status 1.",
      "continue", true, false, false },
    { "reverse-continue", tbd_command_reverse_continue, "[COUNT]",
      "go back to the breakpoint before",
      "If there is none: to the beginning of the recording, with exit status 1.",
      "reverse-continue", true, false, false },
    { "until", tbd_command_until, "[PLACE]",
      "go to the next time that a place is reached, or to the next line further down",
      "Without PLACE it is `next`, but does not go back to an earlier line of the function: it gets out of\n"
      "a loop.  PLACE is a function, FILE:LINE, or the number of a line in the current file; `goto PLACE` is the\n"
      "same for the first two.",
      "tbdq until list.c:31", true, false, false },
    { "all", tbd_command_all, "TYPE [of EXPR] [where CONTEXT]",
      "every such event, in order",
      "Like goto with every count from 1 on; the current position stays.  Exit status 1 if there is\n"
      "none.",
      "tbdq all func_enter where func==main", false, false, false },
    { "stores", tbd_command_stores, "[of] EXPR [where CONTEXT]",
      "all stores to a variable, as rows", "",
      "tbdq stores of list->head where 'newval == 0'", true, false, false },
    { "calls", tbd_command_calls, "FUNCTION [where CONTEXT]",
      "all calls of a function: parameters, result, caller, entry and exit",
      "The caller is the instruction that makes the call; import stubs on the way are skipped.\n"
      "Nesting counts the calls of the same function around it, duration the block entries up to the\n"
      "return.  A call that an exception or longjmp left has no exit and no result, and says so.\n"
      "Parameters and results in vector registers cost one more replay of their windows.\n"
      "The condition may be about all of a row: the entry with its parameters, and retval (of the type\n"
      "of the result), nesting, duration, returned (0: left, or not ended), caller==NAME.\n"
      "In a crash dump: those that the rings have, without values and conditions; [thread ID].",
      "tbdq calls insert where 'key > 10 and retval == 0'", true, false, false },
    { "lines", tbd_command_lines, "FILE[:LINE] [where CONTEXT]",
      "when a source line's code was begun",
      "In a crash dump: as far as the rings reach, without a condition; [thread ID].",
      "tbdq lines list.c:31", true, false, false },
    { "syscalls", tbd_command_syscalls, "[where CONTEXT]",
      "all system calls, as rows", "",
      "tbdq syscalls where 'syscall == openat'", true, false, false },
    { "log", tbd_command_log, "PLACE [where CONTEXT] FORMAT [EXPR...] [also PLACE ...]",
      "a line of text for every execution of a place, as if the program had printed it",
      "PLACE is FUNCTION, FUNCTION:return, FILE:LINE, or a quoted 'TYPE [of EXPR]' as `all` takes it.  CONTEXT is one\n"
      "argument: quote it.  FORMAT is that of printf, for the C expressions that follow, each one argument;\n"
      "%s takes a pointer, an array, a std::string, or an address.  A value that the compiler did not keep is\n"
      "<optimized out>.  Places after `also` are logged with it, all in the order of time.",
      "tbdq log list.c:31 where 'key > 10' 'key=%d next=%p' key list->next", false, false, false },
    { "export", tbd_command_export,
      "FORMAT FILE [func PATTERN | module NAME] [depth N] [where CONTEXT] [counter EXPR]...",
      "write a file that other programs read",
      "FORMAT is perfetto (ui.perfetto.dev), speedscope, folded (flamegraph.pl) or callgrind\n"
      "(callgrind_annotate, kcachegrind): the calls of the program's own functions, or of the chosen ones, times in\n"
      "block entries; with depth N only those with fewer than N of them around.  perfetto also has system calls,\n"
      "signals, the marks of tbd_mark(), and a track with the values of each counter.  Or it is lcov: how often each\n"
      "line and function of the program, or of a module, was executed, for genhtml.  Or lackey FILE [from TIME] [to TIME]:\n"
      "all instructions, loads and stores, as valgrind's lackey prints them, for simulators of caches.  Or core: a core\n"
      "file of the state at the current position, for gdb.  CONTEXT is one argument, about entries, and so is EXPR: quote them.",
      "tbdq export perfetto run.pftrace func 'parse*'", true, false, true },
    { "heap", tbd_command_heap, "[leaks | of ADDR | errors]",
      "the blocks of memory that the program had allocated",
      "At the current position, or at the recording's end (`leaks`): live blocks of malloc, operator new and their\n"
      "families, by the stack of calls that allocated them.  `of ADDR`: each block that contained it, with who\n"
      "allocated and who freed it, and the stores to it.  `errors`: wrong frees, and stores and loads in blocks\n"
      "that were freed and not given out again, over the whole run; at most four of each kind for a block.",
      "tbdq heap leaks", true, false, false },
    { "fds", tbd_command_fds, "[leaks | of N | errors]",
      "the descriptors that the program had open",
      "At the current position, or at the recording's end (`leaks`): open descriptors, by the stack of calls that opened or\n"
      "copied them, with what they lead to; those that were inherited from a process that was recorded are shown where it\n"
      "opened them.  `of N`: what became of descriptor N: opened, copied, inherited, marked, closed, used while closed.\n"
      "`errors`: calls that failed because a descriptor was not open, over the whole run: double closes, uses after close.",
      "tbdq fds leaks", true, false, false },
    { "diff", tbd_command_diff, "A B [--ignore RULE,...] [--all] [--max N] [--first] [--brief]",
      "where two runs first differ, and why",
      "A and B are traces.  Of each thread: the branch at which they part, with the calls around it and how often they went\n"
      "the same way; where each goes on; what the branch depended on, followed back on both sides to where they agree: a\n"
      "system call that gave other bytes, the environment, another order of threads, or code that differs.  Then the\n"
      "functions and lines that ran more often on one side.  Addresses do not count as differences, nor does where signals\n"
      "come.  Two builds of a program are compared by function and line.  The C library is compared only if nothing else\n"
      "differs, or with --all; then the bytes that write(), pwrite() and send() gave out.  RULE is a module, whose code is not compared (libc: not even then), or addresses, pids, times:\n"
      "differences that come from these are passed over.  --max N shows N differences of each thread.  --first ends with the first one.  --brief\n"
      "does not follow it back.",
      "tbdq diff good-1 bad-1", false, true, false },
    { "unite", tbd_command_unite, "FILE...",
      "the answer of the whole run, from those of its shards",
      "Each FILE is what `tbdq --shard K/N QUESTION` has printed, for K from 1 to N, in any order: the same rows in the\n"
      "same order, counts and exit status as without --shard.  Neither the trace nor a replay is needed.  Where a shard is\n"
      "missing, cut, or had to leave windows out, this is said, and the exit status is 3.",
      "tbdq unite part-*.jsonl", false, true, false },
    { "signals", tbd_command_signals, "[where CONTEXT]",
      "signals that were handled, and the one that ended the program, as rows", "",
      "tbdq signals where 'signal == SIGALRM'", true, false, false },
    { "count", tbd_command_count, "TYPE [of EXPR] [where CONTEXT] [by func|outer|line|thread|value]",
      "how many such events there are, by function, source line, thread or value",
      "The value is what is stored or loaded, the first argument, the result, the system call.\n"
      "In a crash dump: block_entry, state (instructions), line, func_enter, func_exit or syscall, without a condition, by func,\n"
      "line, module (calls: from which to which) or thread; [thread ID].",
      "tbdq count store of total by line", true, false, false },
    { "history", tbd_command_history, "EXPR [where CONTEXT]",
      "the values that a variable had: from when to when, and who wrote them",
      "The variable is what the C expression denotes at the current position; one on the stack\n"
      "has its history from the call of its function to the return.  One in a register is looked at\n"
      "where each line of its function begins.  A condition chooses among the stores: newval and oldval are\n"
      "the value's type.\n"
      "In a crash dump: one in memory, by the stores whose address is known; without a condition; [thread ID].",
      "tbdq history table[3] where newval '>' 7", true, false, false },
    { "first", tbd_command_first, "CONTEXT",
      "go to the instruction that makes a condition true for the first time",
      "It was true at a line's beginning, or anywhere if at none.  The answer is the store, or\n"
      "another instruction, with which it became true, and since when it holds: print it\n"
      "there.  A condition that is true when its variables begin to exist holds from there on.",
      "tbdq first 'func == insert and list->count == 3'", true, false, false },
    { "last", tbd_command_last, "CONTEXT",
      "go to the instruction that ends a condition for the last time",
      "The store, or another instruction, after which it is not true any more; or the last one\n"
      "at which its variables exist.",
      "tbdq last 'total < 0'", true, false, false },
    { "trace", tbd_command_trace, "FROM TO [where CONTEXT]",
      "the source lines that were executed between two positions", "",
      "tbdq trace 1200 1300", true, false, false },
    { "why", tbd_command_why, "[/DEPTH] EXPR",
      "follow a value back to the instructions that made it",
      "Through copies in memory and registers, and through what calculations made it from,\n"
      "DEPTH (3) calculations deep; each hop with its source line.  EXPR is a variable or\n"
      "$register at the current position.  What was read from a pipe, FIFO, socket or file is\n"
      "followed into the process that wrote it, if that was recorded with this one.",
      "tbdq why /5 result", true, false, false },
    { "mark", tbd_command_mark, "NAME",
      "name the current position",
      "@NAME stands for it in every command from then on; kept in the trace's folder.",
      "tbdq mark crash", true, false, false },
    { "marks", tbd_command_marks, "",
      "the positions that have names", "",
      "tbdq marks", false, false, false },
    { "assert", tbd_command_assert, "EXPRESSION",
      "exit status 1 unless a C expression is true at the current position",
      "For scripts: see `tbdq help scripts`.",
      "tbdq assert 'list->count == 3'", true, false, false },
    { "where", tbd_command_where, "[thread N]",
      "the current position and its instruction", "",
      "tbdq where", true, false, false },
    { "regs", tbd_command_regs, "[thread N]",
      "registers at the current position",
      "Those of the thread that has control there, or of any other.",
      "tbdq --at 1200+3 regs", true, false, false },
    { "mem", tbd_command_mem, "ADDR LEN",
      "memory at the current position",
      "ADDR and LEN are values as in conditions: numbers, &symbol, registers, mem[...]; or C\n"
      "expressions over the variables of the selected frame: a pointer's value, a number, where\n"
      "an array or a struct lies.",
      "tbdq mem list->head 64", true, false, false },
    { "bt", tbd_command_bt, "[full] [COUNT | -COUNT | thread N | threads | -N[+K]]",
      "the call stack at the current position, of a thread or of all that live there",
      "Innermost first, with what was passed to each: numbers and pointers, `...` for the rest.  `full` adds the\n"
      "variables.  Frames found by guessing are marked with '?'.  With COUNT that many of the innermost frames, with\n"
      "-COUNT of the outermost, and how many there are besides.\n"
      "-N[+K], in a crash dump: the calls at a position of `path`, from the calls and returns that the ring has.",
      "tbdq bt", true, false, false },
    { "frame", tbd_command_frame, "[NUMBER]",
      "show or select a frame of the call stack",
      "Numbers are those of bt; inlined functions are frames too.  list, locals and print are about\n"
      "the selected frame; it is 0 again after every move.",
      "tbdq frame 2", true, false, false },
    { "up", tbd_command_up, "[COUNT]",
      "select the caller's frame", "",
      "tbdq up", true, false, false },
    { "down", tbd_command_down, "[COUNT]",
      "select the callee's frame", "",
      "tbdq down", true, false, false },
    { "list", tbd_command_list, "[FUNCTION | FILE:LINE] [COUNT] | [FILE:]FIRST,LAST",
      "source around the line of the selected frame, or around another place",
      "COUNT (default 10) lines, or those from FIRST to LAST.  The files are read where the debug information says they are.",
      "tbdq list list.c:31 20", true, false, false },
    { "print", tbd_command_print, "[/FORMAT] EXPRESSION[@COUNT]",
      "the value of a C expression in the selected frame",
      "The program's variables by scope, with . -> [] * & casts, sizeof and the operators of C;\n"
      "elements of C++ containers by index or key, *iterator, and size(), front(), get(), value() and the like;\n"
      "$rax is a register.  EXPR@COUNT prints COUNT consecutive values.\n"
      "FORMAT is x, d, u, o, t (binary) or c, before or after the expression.\n"
      "-pretty, -object off, -static-members off before the expression are those of `set print`.\n"
      "Printed values are $1, $2, ... while the session lasts; $ is the last one, $$ the one before.\n"
      "What the compiler did not keep is <optimized out: reason>.",
      "tbdq print 'list->head->key + 1'", true, false, false },
    { "printf", tbd_command_printf, "\"FORMAT\"[, EXPRESSION]... | FORMAT [EXPRESSION...]",
      "values at the current position, as a format of C's printf writes them",
      "As gdb takes it, or each value a word of its own, as a shell passes them.  Conversions are those of `log`;\n"
      "%s takes a pointer, an array, a std::string, or an address.  A line ends where the format has \\n.",
      "tbdq printf 'limit %d of %s\\n' limit name", true, false, false },
    { "set", tbd_command_set, "$NAME = EXPRESSION | print SETTING [on|off]",
      "name a value, or choose how values are printed, while the session lasts",
      "$NAME stands for the value in expressions; it stays as it was at other positions.\n"
      "print pretty: a line for each member.  print object: objects as what they are, also behind a\n"
      "pointer to a base class (on).  print static-members (on).",
      "tbdq set '$head = list->head'", true, false, false },
    { "x", tbd_command_examine, "[/COUNT FORMAT SIZE] EXPRESSION",
      "memory from an address on, as gdb shows it",
      "FORMAT is x, z, d, u, o, t (binary), c, a (address), f, s (string) or i (instructions),\n"
      "SIZE is b, h, w or g (8 bytes).\n"
      "Without EXPRESSION it goes on where the last one ended, x/i at first at $pc.",
      "tbdq x/4gx '$sp'", true, false, false },
    { "locals", tbd_command_locals, "[args] [FRAME]",
      "parameters and local variables of the selected frame, or of another one",
      "Innermost block first.  With args: parameters only.",
      "tbdq locals", true, false, false },
    { "ptype", tbd_command_ptype, "TYPE | EXPRESSION",
      "a type, its size, and where its members are",
      "Of a pointer also what it leads to, of an enumeration its values.",
      "tbdq ptype struct node", true, false, false },
    { "symbol", tbd_command_symbol, "ADDRESS",
      "the function or variable that an address lies in",
      "ADDRESS is a C expression: a number, a pointer's value, a register; an array, struct or function is where it\n"
      "lies.  As `info symbol` of gdb.",
      "tbdq symbol '$pc'", true, false, false },
    { "line", tbd_command_line, "[FUNCTION | FILE:LINE | LINE | *ADDRESS]",
      "the addresses of the code of a source line",
      "A row for each stretch of code, up to its end; of a function that of its first line.  LINE is one of the\n"
      "selected frame's file, without a place it is the frame's own line.  As `info line` of gdb.",
      "tbdq line list.c:31", true, false, false },
    { "functions", tbd_command_functions, "[PATTERN]",
      "the functions of the program and its libraries, and where they are",
      "PATTERN is a regular expression, as grep takes it, that fits a part of the name.  By source file and line; symbols\n"
      "without debug information come last.  As `info functions` of gdb.",
      "tbdq functions '^list_'", true, false, false },
    { "variables", tbd_command_variables, "[PATTERN]",
      "global and static variables, their types, and where they are",
      "The same for what is not in a function.  As `info variables` of gdb.",
      "tbdq variables total", true, false, false },
    { "types", tbd_command_types, "[PATTERN]",
      "the types that the program and its libraries have names for",
      "The same for structs, unions, classes, enumerations, typedefs and basic types.  As `info types` of gdb.",
      "tbdq types node", true, false, false },
    { "view", NULL, "[--port N | --out FILE [QUESTION...]]",
      "show the trace in a browser",
      "Serves a page on the loopback interface, at a port that is free or N, and prints its address.  Who has the\n"
      "address, which has a random part, sees all that is in the trace.  The page takes any question, and moves\n"
      "by itself: the current position stays.  Ctrl-C ends it.  With --out: the page at the current position, with\n"
      "the answers of questions, as one file that needs no server.",
      "tbdq view", true, false, false },
    { "disas", tbd_command_disas, "[COUNT | FUNCTION]",
      "instructions from the current position on, as they were executed; or a function's",
      "The instructions of the blocks entered from here on; COUNT (default 10) of them.  All instructions\n"
      "of FUNCTION, as memory holds them at the current position.",
      "tbdq disas 20", true, false, false },
    { "gdb", NULL, "[ARGUMENT...]",
      "start gdb on the current position",
      "gdb sees the recording as a program that it debugs remotely: steps, breakpoints and watchpoints go\n"
      "forward and back (reverse-step, reverse-continue, ...), files come out of the trace, `monitor` takes\n"
      "any command of tbdq.  Nothing can be changed: registers, memory, calls of functions.  Arguments are\n"
      "gdb's.  Its last position is the current one afterwards.",
      "tbdq gdb -ex 'watch settings.limit' -ex reverse-continue", true, false, false },
    { "serve", NULL, "--gdb [stdio|:PORT|PATH]",
      "serve the trace to a debugger by gdb's remote protocol",
      "At standard input and output, on a port of the loopback interface (0: any), or on a Unix socket that\n"
      "only this user can reach; clients one after another.  (gdb) set sysroot target: lets gdb read the\n"
      "program's files out of the trace.  Whoever reaches the port sees all that is in the trace.",
      "tbdq serve --gdb :1234", true, false, false },
    { "dap", NULL, "[stdio|:PORT|PATH]", "show a trace in an editor, by the Debug Adapter Protocol",
      "VS Code (editors/vscode), nvim-dap, dape and others start it; docs/EDITORS.md has their settings.  The\n"
      "client launches a trace, or a program that is recorded first.  Steps, runs and breakpoints go forward\n"
      "and back; the console takes any command of tbdq.  A port is one of the loopback interface, a path that\n"
      "of a Unix socket; whoever reaches the port sees all traces that this user can read.",
      "tbdq dap", false, false, false },
    { "verify", tbd_command_verify, "[-j WORKERS] [--quick]",
      "replay every window and compare it with what was recorded",
      "Registers, memory, system calls and every event.  With --quick as a question replays it:\n"
      "each window's end state and system calls.  Exit status 1 if a window diverges.",
      "tbdq verify -j 4", false, false, false },
    { "diverge", tbd_command_diverge, "[WINDOW]",
      "what differs in a window that does not replay as it was recorded",
      "The first system call or other event that differs, or else every register and page that does at the\n"
      "window's end, as recorded and as replayed.  Without WINDOW: the first one that `verify` finds.\n"
      "Exit status 1 if none differs.",
      "tbdq diverge", false, false, false },
    { "dump", tbd_command_dump, "WINDOW",
      "everything a window holds, in order",
      "Block entries, ops and messages as recorded.",
      "tbdq dump 0", false, false, false },
    { "lower", tbd_command_lower, "WINDOWS [LEVEL]",
      "give up details of windows that a replay can bring back",
      "WINDOWS is a number, FIRST-LAST or all.  LEVEL 2 keeps no events, 1 (the default) no counts\n"
      "either: only which words were stored to and which blocks entered.  Questions are answered as\n"
      "before.",
      "tbdq lower 0-99 2", false, false, true },
    { "raise", tbd_command_raise, "WINDOWS [2|3]",
      "bring windows back to level 3 by replay, or count them: level 2",
      "Their files are then what was recorded, byte for byte.  Windows recorded with count=later\n"
      "have been counted then.",
      "tbdq raise 3", false, false, true },
    { "merge", tbd_command_merge, "WINDOWS [COUNT]",
      "make one window of several, or of every COUNT of them",
      "They keep no events, and take less space together.  Later windows get other numbers.",
      "tbdq merge 0-63 8", false, false, true },
    { NULL, NULL, NULL, NULL, NULL, NULL, false, false, false },
};
// clang-format on

/* What `--shard` can ask: the answer for some windows is a part of that for all. */
static const char *const of_shards[] = { "goto",     "all",     "stores", "lines",
                                         "syscalls", "signals", "count",  "calls",
                                         "log",      "history", "heap" };

bool tbd_command_takes_shards(const struct tbd_command *command)
{
    for (size_t i = 0; i < sizeof(of_shards) / sizeof(of_shards[0]); i++) {
        if (strcmp(command->name, of_shards[i]) == 0)
            return true;
    }
    return false;
}

/* What a crash dump answers: questions about its one position. */
static const char *const of_dumps[] = {
    "facts",   "ls",     "rm",    "path",  "info",        "windows",   "modules", "processes",
    "threads", "thread", "mark",  "marks", "assert",      "where",     "regs",    "mem",
    "bt",      "frame",  "up",    "down",  "list",        "print",     "set",     "x",
    "locals",  "ptype",  "disas", "dump",  "breakpoints", "delete",    "pack",    "du",
    "printf",  "symbol", "line",  "types", "functions",   "variables", "context", "branches",
};

bool tbd_command_is_of_dumps(const struct tbd_command *command)
{
    for (size_t i = 0; i < sizeof(of_dumps) / sizeof(of_dumps[0]); i++) {
        if (strcmp(command->name, of_dumps[i]) == 0)
            return true;
    }
    return false;
}

const struct tbd_command *tbd_command_find(const char *name)
{
    for (const struct tbd_command *command = tbd_commands; command->name != NULL; command++) {
        if (strcmp(command->name, name) == 0)
            return command;
    }
    return NULL;
}
