// SPDX-License-Identifier: MIT
/* forms.h - the shapes that instructions have (instructions.def)
 *
 * A form is a function that describes one instruction of a row; false: not in this shape.  Operand 0 is the destination
 * in the names' order (Intel's). */
#ifndef TBD_REPLAY_SIMULATE_FORMS_H
#define TBD_REPLAY_SIMULATE_FORMS_H

#include "replay/simulate/insn_build.h"

typedef bool (*tbd_form)(struct tbd_build *b, enum tbd_operation operation, unsigned aux);

#define FORM(name)                                                                                 \
    bool tbd_form_##name(struct tbd_build *b, enum tbd_operation operation, unsigned aux)

/* forms_arithmetic.c */
FORM(binary);       /* 0 = 0 op 1, all flags */
FORM(compare);      /* flags of 0 - 1 */
FORM(carry);        /* 0 = 0 op 1 op CF */
FORM(logic);        /* 0 = 0 op 1, no carry */
FORM(test);         /* flags of 0 & 1 */
FORM(step);         /* 0 = 0 op 1, CF as before */
FORM(negate);       /* 0 = 0 - 0 */
FORM(complement);   /* 0 = ~0, no flags */
FORM(multiply);     /* one, two or three operands */
FORM(widening);     /* rdx:rax = rax * 0 */
FORM(mulx);         /* 0:1 = rdx * 2, no flags */
FORM(divide);       /* rax = rdx:rax / 0, rdx the rest */
FORM(shift);        /* 0 = 0 op 1 */
FORM(rotate_carry); /* 0 = CF:0 rotated by 1 */
FORM(double_shift); /* 0 = 0:1 shifted by 2 */
FORM(shift_by);     /* 0 = 1 op 2, no flags */
/* forms_bits.c */
FORM(bit_test);    /* CF = bit 1 of 0; the bit is then set, cleared, or flipped */
FORM(bit_scan);    /* 0 = function of 1, unless that is 0 */
FORM(bit_count);   /* 0 = function of 1 */
FORM(and_not);     /* 0 = ~1 & 2 */
FORM(lowest);      /* of the lowest bit of 1 */
FORM(bit_field);   /* 0 = function of 1 and 2, flags */
FORM(bit_deposit); /* 0 = function of 1 and 2 */
FORM(carry_flag);  /* CF is set, cleared or flipped */
FORM(direction);   /* DF is set or cleared */
FORM(flags_to_ah);
FORM(ah_to_flags);
FORM(set); /* 0 = condition */
/* forms_move.c */
FORM(move);         /* 0 = 1, zeros above it */
FORM(move_signed);  /* 0 = 1 with its sign */
FORM(move_swapped); /* 0 = 1 with its bytes reversed */
FORM(move_if);      /* 0 = condition ? 1 : 0 */
FORM(address);      /* 0 = the address of 1 */
FORM(exchange);
FORM(exchange_add);
FORM(compare_exchange);
FORM(compare_exchange_pair); /* rdx:rax with 0, of 16 bytes */
FORM(translate);             /* al = the byte of a table at its number */
FORM(segment_base);          /* 0 = the place aux */
FORM(swap);
FORM(widen);     /* rax from its lower half */
FORM(sign_into); /* rdx from the sign of rax */
/* forms_flow.c */
FORM(push);
FORM(pop);
FORM(leave);
FORM(push_flags);
FORM(pop_flags);
FORM(jump);
FORM(jump_if);
FORM(jump_if_zero);
FORM(loop);
FORM(call);
FORM(ret);
FORM(system_call);
FORM(nothing);
/* forms_string.c */
FORM(string_move);
FORM(string_store);
FORM(string_load);
FORM(string_compare);
/* forms_state.c */
FORM(state_save); /* registers to memory */
FORM(state_restore);
/* forms_vector.c */
FORM(vector_move); /* 0 = the last operand, all of it */
FORM(vector_low);  /* the lowest 4 or 8 bytes */
FORM(scalar_move); /* the same with the rest merged */
FORM(vector_half);
FORM(vector_binary); /* lane by lane */
FORM(vector_signs);  /* 0 = the elements' sign bits */
FORM(vector_shift);  /* each element by a number */
FORM(vector_choice); /* 0 = a function of the bits of 0, 1 and 2 */
FORM(vector_test);   /* flags of 0 & 1 and ~0 & 1 */
FORM(vector_zero);
FORM(vector_strings); /* strings 0 and 1 compared as 2 says: ecx or xmm0, flags */
FORM(mask_compare);   /* mask 0 = elements of 1 and 2 that are as the last operand says */
FORM(mask_test);      /* mask 0 = elements of 1 & 2 that are not 0 */
FORM(mask_move);      /* the lowest bits */
FORM(mask_binary);    /* 0 = 1 op 2 */
FORM(mask_not);       /* 0 = ~1 */
FORM(mask_same);      /* 0 = ~(1 ^ 2) */
FORM(mask_shift);     /* 0 = 1 shifted by a number */
FORM(mask_test_both); /* flags of 0 & 1 and ~0 & 1 */
FORM(mask_unpack);    /* 0 = 1:2 */
FORM(mask_or_test);   /* flags of 0 | 1 */
/* forms_state.c: rt_sigreturn, whose stack pointer is at struct ucontext. */
void tbd_build_return_from_signal(struct tbd_build *b);
/* forms_shuffle.c */
FORM(vector_unpack);
FORM(vector_shuffle);
FORM(vector_shuffle_words);
FORM(vector_shuffle_two);
FORM(vector_shuffle_bytes);
FORM(vector_align);
FORM(vector_shift_bytes);
FORM(vector_align_elements);
FORM(vector_broadcast);
/* forms_elements.c */
FORM(vector_put_element);   /* element 2 of 0 = 1 */
FORM(vector_take_element);  /* 0 = element 2 of 1 */
FORM(vector_insert_single); /* insertps */
FORM(vector_widen);         /* elements with zeros or signs above them */
FORM(vector_blend);         /* elements of 0 or 1, as a number says */
FORM(vector_blend_by);      /* as signs say */
FORM(vector_blend_mask);    /* as the mask says */
FORM(vector_double);        /* each other element twice */
FORM(vector_repeat);        /* a piece everywhere */
FORM(vector_insert);        /* a piece of 16 or 32 bytes */
FORM(vector_extract);
FORM(vector_permute);        /* lanes of 8 bytes */
FORM(vector_permute_halves); /* halves of two sources */
FORM(vector_shuffle_pieces);

#endif
