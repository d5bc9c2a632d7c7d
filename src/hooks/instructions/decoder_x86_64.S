/* SPDX-License-Identifier: MIT */
/* decoder_x86_64.S - the decoder library's bytes, made when tbd was built (tools/decoder-image.c) */
        .section .rodata.tbd_decoder, "a", @progbits
        .balign 4096
        .globl  tbd_decoder_image, tbd_decoder_image_end
tbd_decoder_image:
        .incbin TBD_DECODER_IMAGE
tbd_decoder_image_end:
        .section .note.GNU-stack, "", @progbits
