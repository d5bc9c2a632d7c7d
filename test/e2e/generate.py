# SPDX-License-Identifier: MIT
"""Small random C programs: deterministic, always terminating, without undefined behaviour.  They
count how often each function was entered and each counter stored to."""
import random

_TYPES = ("uint8_t", "uint16_t", "uint32_t", "uint64_t", "int32_t")


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.functions = self.random.randrange(3, 9)
        self.lines = []
        self.loop_depth = 0

    def pick(self, *items):
        return self.random.choice(items)

    def emit(self, depth, text):
        self.lines.append("    " * depth + text)

    def scalar(self):
        return "g%d" % self.random.randrange(6)

    def element(self, index=None):
        return "a%d[(%s) & 31]" % (self.random.randrange(3), index or self.expression(2))

    def leaf(self):
        return self.pick("x", "y", "t", self.scalar(), "%du" % self.random.getrandbits(self.pick(3, 8, 31)), "(uint64_t)a1[x & 31]")

    def expression(self, depth=0):
        if depth >= 3 or self.random.random() < 0.25:
            return self.leaf()
        a, b = self.expression(depth + 1), self.expression(depth + 1)
        form = self.random.randrange(10)
        if form < 5:
            return "((uint64_t)%s %s (uint64_t)%s)" % (a, self.pick("+", "-", "*", "^", "&", "|"), b)
        if form == 5:
            return "((uint64_t)%s %s ((%s) & 31))" % (a, self.pick("<<", ">>"), b)
        if form == 6:
            return "((uint64_t)%s %s ((uint64_t)%s | 1))" % (a, self.pick("/", "%"), b)
        if form == 7:
            return "(%s %s %s ? %s : t)" % (a, self.pick("<", ">", "==", "!="), b, self.leaf())
        return "(uint64_t)(%s)%s" % (self.pick(*_TYPES), "(%s)" % a)

    def call(self, function):
        arguments = "%s, %s" % (self.expression(1), self.expression(1))
        if function == 0:
            return "f0(%s)" % arguments
        return self.pick("f%d(%s)" % (self.random.randrange(function), arguments),
                         "table[(%s) %% %du](%s)" % (self.expression(2), function, arguments))

    def statement(self, depth, function):
        form = self.random.randrange(13)
        if form < 3:
            self.emit(depth, "%s = %s;" % (self.pick("x", "y", "t", self.scalar()), self.expression()))
        elif form < 5:
            self.emit(depth, "%s %s= (uint64_t)%s;" % (self.element(), self.pick("", "+", "^", "-"), self.expression()))
        elif form == 5 and depth < 4:
            self.emit(depth, "if (%s & %d) {" % (self.expression(), self.pick(1, 2, 4, 5)))
            self.block(depth + 1, function)
            self.emit(depth, "} else {")
            self.block(depth + 1, function)
            self.emit(depth, "}")
        elif form == 6 and self.loop_depth < 2:
            self.loop_depth += 1
            name = "i%d" % self.loop_depth
            self.emit(depth, "for (unsigned %s = 0; %s < %d; %s++) {" % (name, name, self.random.randrange(1, 12), name))
            self.emit(depth + 1, "x += %s * 3;" % name)
            self.block(depth + 1, function)
            self.emit(depth, "}")
            self.loop_depth -= 1
        elif form == 7 and depth < 4:
            self.emit(depth, "switch ((%s) & 7) {" % self.expression())
            for case in sorted(self.random.sample(range(8), 5)):
                self.emit(depth, "case %d:" % case)
                self.block(depth + 1, function, 1)
                self.emit(depth + 1, "break;")
            self.emit(depth, "default: t ^= 5;")
            self.emit(depth, "}")
        elif form == 8:
            self.emit(depth, "d += (double)(%s & 1023) * 0.125 - d / 3;" % self.expression())
        elif form == 9:
            self.emit(depth, "memcpy(&a%d[%d], &a%d[%d], %d);" % (self.random.randrange(3), self.random.randrange(8),
                                                                 self.random.randrange(3), 16 + self.random.randrange(8), self.random.randrange(17)))
        elif form == 10:
            self.emit(depth, "s.%s += (%s)%s;" % (*self.pick(("a", "uint8_t"), ("b", "uint32_t"), ("c", "uint64_t")), self.expression()))
        else:
            self.emit(depth, "%s ^= %s;" % (self.pick("x", "y", "t"), self.call(function)))

    def block(self, depth, function, count=None):
        for _ in range(count or self.random.randrange(1, 4)):
            self.statement(depth, function)

    def body(self, function):
        self.emit(0, "__attribute__((noipa)) uint64_t f%d(uint64_t x, uint64_t y)" % function)
        self.emit(0, "{")
        self.emit(1, "uint64_t t = x * %du + y;" % self.random.randrange(1, 1000))
        self.emit(1, "struct s { uint8_t a; uint32_t b; uint64_t c; } s = { (uint8_t)y, (uint32_t)x, t };")
        self.emit(1, "entered[%d]++;" % function)
        self.emit(1, "if (fuel == 0)")
        self.emit(2, "return x ^ y;")
        self.emit(1, "fuel--;")
        self.block(1, function, self.random.randrange(4, 9))
        self.emit(1, "return x + y * 3 + t + s.a + s.b + s.c;")
        self.emit(0, "}")
        self.emit(0, "")

    def program(self):
        head = ["#include <stdint.h>", "#include <stdio.h>", "#include <string.h>", "", "double d;", "unsigned fuel = 20000;",
                "volatile unsigned entered[%d];" % self.functions]
        head += ["%s g%d;" % (self.pick(*_TYPES), i) for i in range(6)]
        head += ["%s a%d[64];" % (self.pick("uint32_t", "uint64_t", "uint16_t"), i) for i in range(3)]
        head += ["typedef uint64_t function(uint64_t, uint64_t);", "function %s;" % ", ".join("f%d" % i for i in range(self.functions)),
                 "static function *const table[] = { %s };" % ", ".join("f%d" % i for i in range(self.functions)), ""]
        for function in range(self.functions):
            self.body(function)
        head += self.lines
        head += ["int main(void)", "{", "    uint64_t sum = 1;", "",
                 "    for (unsigned i = 0; i < 40 && fuel > 0; i++)",
                 "        sum = sum * 31 + f%d(sum, i);" % (self.functions - 1)]
        head += ["    printf(\"call f%d %%u\\n\", entered[%d]);" % (i, i) for i in range(self.functions)]
        head += ["    for (int i = 0; i < 64; i++)", "        sum = sum * 31 + a0[i] + a1[i] * 3u + a2[i] * 7u;",
                 "    printf(\"%llx %.6g\\n\", (unsigned long long)(sum + g0 + g1 + g2 + g3 + g4 + (uint64_t)g5), d);",
                 "    return 0;", "}", ""]
        return "\n".join(head)
