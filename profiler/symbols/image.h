/*
 * image.h - bytes of an ELF object: a file, a piece of memory, or this process.
 *
 * Every byte is untrusted.  Nothing is mapped: a file that is cut short under us
 * is a short read here, not a SIGBUS.
 */
#ifndef SYMBOLS_IMAGE_H
#define SYMBOLS_IMAGE_H

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "build_id.h"

#define IMAGE_LOADS_MAX    16  /* executable segments; real objects have one or two */

struct image_load {
	uint64_t offset, vaddr, size; /* size: of its part in the file */
};

struct image {
	int                  fd;      /* -1: not a file */
	const unsigned char *data;    /* bytes in our own memory */
	uintptr_t            address; /* else: where it is mapped in this process */
	uint64_t             size;
	ElfW(Ehdr)           header;
	struct image_load    loads[IMAGE_LOADS_MAX];
	unsigned             load_count;
	uint32_t             section_count, section_names;
	bool                 mapped;   /* it has the sections below, and no other */
	ElfW(Shdr)           symbols, strings, frames;
};

/* All: 0 or a negative errno; -ENOEXEC: not an ELF object of this machine. */
int image_open_file(struct image *img, int fd); /* borrows fd */
int image_open_data(struct image *img, const void *data, size_t size);
int image_open_memory(struct image *img, uintptr_t address, size_t size);
/* An object as the loader has mapped it, its first bytes at address: offsets are from there.  It has no
 * sections but .dynsym, its strings and .eh_frame, as the program headers tell of them. */
int image_open_mapped(struct image *img, uintptr_t address, size_t size);

/* All of the bytes, or a negative errno. */
int image_read(const struct image *img, uint64_t offset, void *buf, size_t size);
/* As many as there are, at most size. */
int image_read_some(const struct image *img, uint64_t offset, void *buf, size_t size, size_t *ret_size);
int image_section(const struct image *img, uint32_t index, ElfW(Shdr) *ret);
/* -ENOENT without one of that name and a place in the file. */
int image_section_find(const struct image *img, const char *name, ElfW(Shdr) *ret);
/* Lower-case hex into buf[BUILD_ID_MAX]; -ENOENT without one. */
int image_build_id(const struct image *img, char *buf);
/* The ELF's own address of a byte of its file. */
bool image_vaddr(const struct image *img, uint64_t offset, uint64_t *ret_vaddr);
/* Whether an address lies in an executable segment. */
bool image_is_code(const struct image *img, uint64_t vaddr);

#endif
