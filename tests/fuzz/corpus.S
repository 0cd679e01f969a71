/* SPDX-License-Identifier: GPL-2.0-only */
/* The corpus, as text in the fuzzer. */
	.section .rodata
	.globl corpus_text
corpus_text:
	.incbin CORPUS
	.byte 0
	.section .note.GNU-stack, "", @progbits
