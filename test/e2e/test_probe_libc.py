#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Functions of libc and libm, a probe on each of their instructions: what they return and write is what they do natively."""
import os
import re
import subprocess

import tbdtest
from test_probes import probe

# One call each; what it writes lies in `out` (wide: `wout`), which is printed, too.  `s` and `t` are texts, `w` and `v` wide ones.
CALLS = """
strlen(s) strnlen(s, 20) strcmp(s, t) strncmp(s, t, 9) strcasecmp(s, t) strncasecmp(s, t, 30) strcoll(s, t) strchr(s,'q')-s strrchr(s,'o')-s strchrnul(s,'j')-s
strstr(s,"lazy")-s strcasestr(s,"LAZY")-s strspn(s,"Teh ") strcspn(s,"xyz") strpbrk(s,"xyz")-s strcpy(out,s)-out strncpy(out,s,50)-out stpcpy(out,s)-out
stpncpy(out,s,60)-out strcat(out,s)-out strncat(out,t,5)-out strxfrm(out,s,90) strtok(out," ")!=0 strsep(&p,"o")!=0 strdup(s)!=0 strndup(s,7)!=0 strerror(5)[0]
strsignal(9)[0] strverscmp("a10","a9") basename(path)-path memcpy(out,s,44)-(void*)out memmove(out+3,out,60)-(void*)out mempcpy(out,t,33)-(void*)out memset(out,'x',70)-(void*)out
memcmp(s,t,44) memchr(s,'z',44)-(void*)s memrchr(s,'o',44)-(void*)s rawmemchr(s,'z')-(void*)s memmem(s,44,"dog",3)-(void*)s memccpy(out,s,'w',44)-(void*)out
memfrob(out,9)-(void*)out swab(s,out,30) bcopy(s,out,9) bzero(out,5) bcmp(s,t,5) ffs(48) ffsl(1L<<40) ffsll(96)
atoi("-123x") atol("99999999999") atoll("7") strtol("0x7fz",&p,0) strtoul("777",&p,8) strtoll("-9",&p,36) strtoull("ffff",&p,16) strtoimax("12",&p,10)
abs(-5) labs(-6) llabs(-7) div(17,5).rem ldiv(-17,5).quot lldiv(99,7).rem a64l("abc./") l64a(123456)[0] rand_r(&seed) nrand48(x48) jrand48(x48) erand48(x48)*1e6
srand(7) rand() srandom(9) random() srand48(3) lrand48() mrand48() drand48()*1e6
qsort(numbers,40,4,compare) bsearch(&numbers[7],numbers,40,4,compare)!=0 lfind(&numbers[3],numbers,&forty,4,compare)!=0 insque(&links[1],&links[0]) remque(&links[1])
tsearch(s,&root,compare_text)!=0 tfind(s,&root,compare_text)!=0 tdelete(s,&root,compare_text)!=0 hcreate(30) hsearch(entry,ENTER)!=0 hdestroy()
isalpha('x') isdigit('x') isalnum('_') isspace(9) ispunct('!') isupper('Q') islower('Q') isxdigit('f') iscntrl(7) isgraph(' ') isprint(' ') isblank(9) toupper('q') tolower('Q') toascii(200)
wcslen(w) wcsnlen(w,9) wcscmp(w,v) wcsncmp(w,v,4) wcscasecmp(w,v) wcsncasecmp(w,v,9) wcschr(w,L'q')-w wcsrchr(w,L'o')-w wcsstr(w,L"lazy")-w wcsspn(w,L"Teh ") wcscspn(w,L"xyz")
wcspbrk(w,L"xyz")-w wcscpy(wout,w)-wout wcsncpy(wout,w,20)-wout wcpcpy(wout,v)-wout wcscat(wout,v)-wout wmemcpy(wout,w,20)-wout wmemmove(wout+1,wout,20)-wout wmemset(wout,L'y',9)-wout
wmemcmp(w,v,20) wmemchr(w,L'z',40)-w wcstol(L"123",&wp,10) wcstod(L"1.5",&wp)*10 wcsdup(w)!=0 towupper(L'q') towlower(L'Q') iswalpha(L'q') iswdigit(L'q') iswspace(L' ') wcwidth(L'q') wcswidth(w,9)
mbstowcs(wout,s,40) wcstombs(out,w,40) mblen(s,4) mbtowc(wout,s,4) wctomb(out,L'q') btowc('q') wctob(L'q') mbrlen(s,4,0)
snprintf(out,90,"%d %05x %-7s|%+.3e %g %c %%%n",-17,255,s+40,3.14159,1e-7,'q',&n) sprintf(out,"%lld %a %08.3f",-5LL,1.5,-2.25) sscanf("17 ff abc 2.5","%d %x %s %lf",&n,&seed,out,&d)
swprintf(wout,40,L"%d %ls",7,w+40) asprintf(&p,"%s-%s",s,t) fmemopen(out,90,"r")!=0 open_memstream(&p,&forty2)!=0 getsubopt(&p2,tokens,&p)
time(0)>0 gmtime_r(&when,&tm)->tm_yday localtime_r(&when,&tm)->tm_hour mktime(&tm) timegm(&tm) asctime_r(&tm,out)-out ctime_r(&when,out)-out strftime(out,90,"%A %d %B %Y %H:%M:%S %j",&tm) strptime("2026-11-27","%Y-%m-%d",&tm)!=0 difftime(9,4)
getpid()>0 getppid()>0 getuid()>=0 sysconf(30) getpagesize() getenv("HOME")!=0 setenv("A_B","c",1) unsetenv("A_B") putenv(assignment) clearenv() isatty(99) ttyname(99)!=0
malloc(100)!=0 calloc(7,9)!=0 realloc(0,55)!=0 free(malloc(33)) aligned_alloc(64,128)!=0 posix_memalign(&vp,32,64) malloc_usable_size(vp)>0 reallocarray(0,3,4)!=0
inet_addr("1.2.3.4") inet_aton("9.8.7.6",&in) inet_ntoa(in)[0] inet_pton(2,"127.0.0.1",out) inet_ntop(2,&in,out,40)!=0 htons(7) htonl(9) ntohs(7) ntohl(9)
fnmatch("*.c","a.c",0) glob("/dev/nul[l]",0,0,&globbed) globfree(&globbed) wordexp("a b",&words,0) wordfree(&words) regcomp(&regex,"q(u+)i.*k",1) regexec(&regex,s,0,0,0) regfree(&regex)
setlocale(6,"C")!=0 localeconv()!=0 nl_langinfo(14)[0] iconv_open("UTF-8","LATIN1")!=0 ecvt(3.25,5,&n,&n2)[0] fcvt(3.25,5,&n,&n2)[0] gcvt(2.5,6,out)-out strtod("1.25e3",&p) strtof("2.5",&p) strtold("7.5",&p) atof("3.5")
sigemptyset(&set) sigfillset(&set) sigaddset(&set,9) sigdelset(&set,9) sigismember(&set,9) sigprocmask(0,0,&set) setjmp(jump) sched_yield() usleep(1) getrusage(0,&usage) times(&tms)>0 clock()>=0
sin(1.5)*1e9 cos(1.5)*1e9 tan(1.5)*1e9 exp(1.5)*1e9 log(1.5)*1e9 pow(1.5,2.5)*1e9 atan2(1.5,2)*1e9 cbrt(2)*1e9 fmod(7.5,2)*10 floor(-1.5) ceil(1.2) round(2.5) lround(2.6) ldexp(1.5,4) hypot(3,4) tgamma(4.5)*1e6 erf(0.5)*1e9 sinh(1)*1e9 acos(0.5)*1e9 log1p(0.5)*1e9
"""
LIBM = set("sin cos tan exp log pow atan2 cbrt fmod floor ceil round lround ldexp hypot tgamma erf sinh acos log1p".split())
PROGRAM = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <fnmatch.h>
#include <glob.h>
#include <iconv.h>
#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <malloc.h>
#include <math.h>
#include <regex.h>
#include <sched.h>
#include <search.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>
#include <wordexp.h>
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static int compare_text(const void *a, const void *b) { return strcmp(a, b); }
static char s[64] = "The quick brown fox jumps over the lazy dog.", t[64] = "the quick brown cat jumps over the lazy hen!", out[128];
static char copy[64];
static char path[] = "/usr/lib/file.c", assignment[] = "Q_R=5", options[] = "ro,size=5";
static wchar_t w[64] = L"The quick brown fox jumps over the lazy dog.", v[64] = L"the quick brown cat", wout[128];
static char *const tokens[] = { "rw", "ro", NULL };
static char *p, *p2;
static wchar_t *wp;
static int numbers[40], n, n2;
static unsigned seed = 5;
static unsigned short x48[3] = { 1, 2, 3 };
static size_t forty = 40, forty2;
static void *root, *vp;
static struct { void *next, *previous; } links[2];
static ENTRY entry = { "key", s };
static time_t when = 1764201600;
static struct tm tm;
static struct in_addr in;
static glob_t globbed;
static wordexp_t words;
static regex_t regex;
static sigset_t set;
static jmp_buf jump;
static struct rusage usage;
static struct tms tms;
static double d;
static void show(const char *name, double number)
{
    unsigned long all = 5381;
    for (size_t i = 0; i < sizeof(out); i++)
        all = all * 33 + (unsigned char)out[i];
    for (size_t i = 0; i < 128; i++)
        all = all * 33 + (unsigned)wout[i];
    for (int i = 0; i < 40; i++)
        all = all * 33 + (unsigned)numbers[i];
    printf("%s %.17g %lx %d %.17g\n", name, number, all, n, d);
}
static long none(int x) { return x; }
#define CALL(name, expression) do { p = strcpy(copy, s + 4); p2 = options; show(name, (double)(expression)); } while (0)
int main(void)
{
    for (int i = 0; i < 40; i++)
        numbers[i] = i * 7919 % 41;
    for (int i = 0; i < 3; i++) {
@CALLS@
    }
    return 0;
}
"""
VOID = ("swab", "bcopy", "bzero", "srand", "srandom", "srand48", "qsort", "insque", "remque", "hdestroy", "free", "globfree", "wordfree", "regfree")
GROUP = 10


def calls():
    """(name, expression) of each call."""
    found = []
    for line in CALLS.strip().split("\n"):
        depth, start, is_text = 0, 0, False
        for i, c in enumerate(line + " "):
            is_text ^= c == '"'
            depth += (c == "(") - (c == ")") if not is_text else 0
            if c == " " and depth == 0 and not is_text:
                found.append(line[start:i])
                start = i + 1
    return [(re.match(r"\w+", call)[0], call) for call in found]


def test_each_instruction_of_functions_of_libc(folder):
    """The functions in groups: with all their instructions probed the program prints what it prints without."""
    source, program = os.path.join(folder, "functions.c"), os.path.join(folder, "functions")
    all_calls = calls()
    names = [name for name, _ in all_calls]
    assert len(set(names)) >= 200, len(set(names))
    text = "\n".join('        CALL("%s", %s);' % (name, "(%s, none(0))" % call if name in VOID else call) for name, call in all_calls)
    with open(source, "w", encoding="ascii") as out:
        out.write(PROGRAM.replace("@CALLS@", text))
    subprocess.run([tbdtest.need("cc"), "-O1", "-w", "-fno-builtin", "-o", program, source, "-lm"], check=True)
    expected = subprocess.run([program], capture_output=True, text=True, check=True, env=tbdtest.clean_env()).stdout
    assert expected == subprocess.run([program], capture_output=True, text=True, check=True, env=tbdtest.clean_env()).stdout, "natively not twice the same"
    groups = [names[i:i + GROUP] for i in range(0, len(names), GROUP)]
    for group in groups if tbdtest.LONG else groups[::8]:
        for options in ([], ["--traps"]):
            script = " ".join("insn:%s:%s { @%s = count() }" % ("libm" if name in LIBM else "libc", name, name) for name in sorted(set(group)))
            result = probe(script, [program], options)
            shown = re.sub(r"^@.*\n", "", result.stdout, flags=re.M)
            assert result.returncode == 0 and shown == expected, (group, options, result.returncode, result.stderr[-300:], len(shown), len(expected))


if __name__ == "__main__":
    tbdtest.main(test_each_instruction_of_functions_of_libc)
