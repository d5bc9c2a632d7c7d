// SPDX-License-Identifier: MIT
/* foretell.c - indirect jumps and calls whose target is foretold
 *
 * A jump through memory with a fixed address, as import stubs have it, leads to the same place nearly always.  What
 * lies there when the block is made is the target that its code expects: it compares, and jumps on like a direct one;
 * any other target goes the way of all indirect ones.  The program may change the memory whenever it likes.
 *
 * Memory that is not writable is taken for what it is: a constant, as the program's code is.  Whatever may change it is
 * a system call, and tbd_patcher_flush_range() comes with that.
 *
 * An import that is bound at its first call leads back to its stub until then.  Such a block expects nothing yet, and
 * is made again once it has led there. */
#include "patcher/cache_private.h"

/* ---- constants ---- */

static bool is_on_page(uint64_t page, uint64_t start, uint64_t end)
{
    return page < end && start < page + TBD_PAGE_SIZE;
}

bool tbd_cache_may_read(uint64_t start, uint64_t end)
{
    for (uint32_t n = 0; n < tbd_cache.read_pages; n++)
        if (is_on_page(tbd_cache.read_page[n], start, end))
            return true;
    return false;
}

/* The constant's page is known from now on.  False: it has two, or there are too many. */
static bool add_read(uint64_t address)
{
    uint64_t page = address & ~(TBD_PAGE_SIZE - 1);

    if (address - page > TBD_PAGE_SIZE - sizeof(uint64_t))
        return false;
    if (tbd_cache_may_read(address, address + 1))
        return true;
    if (tbd_cache.read_pages == TBD_CACHE_READ_PAGES)
        return false;
    tbd_cache.read_page[tbd_cache.read_pages++] = page;
    return true;
}

/* ---- where it leads ---- */

/* push imm32, maybe after endbr64: where an import leads that is not bound yet. */
static bool binds(const struct tbd_patcher_callbacks *callbacks, uint64_t target)
{
    const uint32_t endbr64 = 0xfa1e0ff3;
    uint64_t code;
    bool unused;

    if (!callbacks->word(target, &code, &unused))
        return false;
    if ((uint32_t)code == endbr64)
        code >>= 32;
    return (uint8_t)code == 0x68;
}

static bool is_through_fixed_memory(const struct tbd_insn *insn)
{
    return (insn->kind == TBD_INSN_JUMP_INDIRECT || insn->kind == TBD_INSN_CALL_INDIRECT) &&
           insn->rip_relative && !insn->gs && !insn->cuts_target && !insn->access[0].ea.fs;
}

/* Can a direct exit in the area lead to the target's block, if it is where one would put it? */
static bool is_in_reach(const struct tbd_patch_area *area, uint64_t target)
{
    const struct tbd_block_code *block = tbd_cache_find(target);

    return block ? tbd_cache_area_of(block->entry) == area : tbd_cache_area_serves(area, target);
}

struct tbd_foretold tbd_foretell(const struct tbd_patcher_callbacks *callbacks,
                                 const struct tbd_codegen_config *config,
                                 const struct tbd_patch_area *area, const struct tbd_cut *cut)
{
    const struct tbd_insn *last = cut->count ? &cut->insn[cut->count - 1] : NULL;
    uint64_t target;
    bool is_constant;

    if (!callbacks->word || !config->link || (config->hook_set & ~(uint32_t)TBD_HOOK_BLOCKS) ||
        !last || !is_through_fixed_memory(last) ||
        !callbacks->word(last->target, &target, &is_constant))
        return (struct tbd_foretold){ .target = 0 };
    if (!is_constant && binds(callbacks, target))
        return (struct tbd_foretold){ .is_due = true };
    if (!is_in_reach(area, target))
        return (struct tbd_foretold){ .target = 0 };
    is_constant = is_constant && add_read(last->target);
    return (struct tbd_foretold){ .target = target, .read = is_constant ? last->target : 0 };
}
