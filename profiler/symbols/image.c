/*
 * image.c - reading ELF structures without trusting one of them.
 *
 * Three backings share one door, image_read(): a file by pread, a buffer of ours
 * (an unpacked .gnu_debugdata), and memory of this process by process_vm_readv
 * (or what memory.c has instead), which answers EFAULT where a load would be a SIGSEGV.  Callers hand in offsets
 * as they stand in the file; the range is checked here and nowhere else.
 *
 * What a stranger would get wrong: a file is never mmap'ed.  Somebody may truncate
 * it while we look (an upgrade by cp does), and a touched page would be SIGBUS in
 * the daemon.  And the whole table of sections is never copied: it may claim 64k
 * entries, so headers are read one by one as they are asked for.
 *
 * Tests: tests/symbols/test_symbols.c, tests/symbols/test_hostile.c
 */
#include <config.h>

#include "image.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "arch.h"
#include "memory.h"
#include "process.h"

#define SEGMENTS_MAX 256           /* program headers looked at; real objects have a dozen */
#define SECTIONS_MAX 65536         /* section headers looked at */
#define NAME_MAX_BYTES 32          /* longest section name asked for, its NUL included */
#define PCREL_SDATA4 0x1b         /* what all linkers write */
#define SYMBOLS_MAX (1U << 22)      /* of a mapped object */
#define DYNAMIC_MAX 8192            /* entries of a dynamic section, which are read one by one; some programs need a thousand libraries */
#define WORDS_BYTES ((size_t)4096)
#define NOTES_MAX ((size_t)4096)   /* bytes of one note segment looked at */

#define CLASS (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)
#define DATA  (__BYTE_ORDER == __LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB)

static int
read_file(int fd, uint64_t offset, void *buf, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = pread(fd, (char *)buf + done, size - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return -EIO; /* it has become shorter */
		done += (size_t)n;
	}
	return 0;
}

static int
read_memory(uintptr_t address, void *buf, size_t size)
{
	struct iovec  here = { buf, size }, there = { (void *)address, size };
	ssize_t       n = process_vm_readv(process_memory_id(), &here, 1, &there, 1, 0);
	int           r = n < 0 ? -errno : (size_t)n == size ? 0 : -EFAULT;
	struct memory m;

	if (r != -EPERM && r != -ENOSYS)
		return r;
	/* A container's seccomp rules. */
	r = memory_open(&m);
	if (r < 0)
		return r;
	r = memory_read(&m, address, buf, size) ? 0 : -EFAULT;
	memory_close(&m);
	return r;
}

int
image_read(const struct image *img, uint64_t offset, void *buf, size_t size)
{
	if (offset > img->size || size > img->size - offset)
		return -ERANGE;
	if (!size)
		return 0;
	if (img->fd >= 0)
		return read_file(img->fd, offset, buf, size);
	if (!img->data)
		return read_memory(img->address + offset, buf, size);
	memcpy(buf, img->data + offset, size);
	return 0;
}

int
image_read_some(const struct image *img, uint64_t offset, void *buf, size_t size, size_t *ret_size)
{
	int r;

	if (offset > img->size)
		return -ERANGE;
	if (size > img->size - offset)
		size = (size_t)(img->size - offset);
	r = image_read(img, offset, buf, size);
	if (!r)
		*ret_size = size;
	return r;
}

static int
segment(const struct image *img, unsigned index, ElfW(Phdr) *ret)
{
	return image_read(img, img->header.e_phoff + (uint64_t)index * sizeof(*ret), ret, sizeof(*ret));
}

static unsigned
segment_count(const struct image *img)
{
	return img->header.e_phnum < SEGMENTS_MAX ? img->header.e_phnum : SEGMENTS_MAX;
}

static int
image_open(struct image *img)
{
	const ElfW(Ehdr) *h = &img->header;
	ElfW(Shdr)        first;
	int               r = image_read(img, 0, &img->header, sizeof(img->header));

	if (r < 0)
		return r == -ERANGE ? -ENOEXEC : r;
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_ident[EI_CLASS] != CLASS ||
	    h->e_ident[EI_DATA] != DATA || (ARCH_ELF_MACHINE != EM_NONE && h->e_machine != ARCH_ELF_MACHINE))
		return -ENOEXEC;
	if (h->e_phnum && (h->e_phentsize != sizeof(ElfW(Phdr)) || h->e_phoff > img->size))
		return -ENOEXEC;
	for (unsigned i = 0; i < segment_count(img); i++) {
		ElfW(Phdr) p;

		if (segment(img, i, &p) < 0)
			break;
		if (p.p_type == PT_LOAD && p.p_flags & PF_X && img->load_count < IMAGE_LOADS_MAX)
			img->loads[img->load_count++] =
				(struct image_load){ p.p_offset, p.p_vaddr, p.p_filesz };
	}
	if (!h->e_shoff || h->e_shoff > img->size || h->e_shentsize != sizeof(ElfW(Shdr)))
		return 0; /* no sections: build id and addresses still work */
	img->section_count = h->e_shnum;
	img->section_names = h->e_shstrndx;
	/* More sections than fit the header are counted in the first one. */
	if ((!h->e_shnum || h->e_shstrndx == SHN_XINDEX) &&
	    !image_read(img, h->e_shoff, &first, sizeof(first))) {
		if (!h->e_shnum)
			img->section_count = first.sh_size < SECTIONS_MAX ? (uint32_t)first.sh_size : 0;
		if (h->e_shstrndx == SHN_XINDEX)
			img->section_names = first.sh_link;
	}
	return 0;
}

int
image_open_file(struct image *img, int fd)
{
	struct stat st;

	*img = (struct image){ .fd = fd };
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	img->size = (uint64_t)st.st_size;
	return image_open(img);
}

int
image_open_data(struct image *img, const void *data, size_t size)
{
	*img = (struct image){ .fd = -1, .data = data, .size = size };
	return image_open(img);
}

int
image_open_memory(struct image *img, uintptr_t address, size_t size)
{
	*img = (struct image){ .fd = -1, .address = address, .size = size };
	return image_open(img);
}

/* ---- an object as it is mapped ---- */

/* Numbers of a table, a block for one call.  No page is smaller than a block, so all of a
 * block is there or none of it. */
struct words {
	const struct image *img;
	uint64_t            from;
	size_t              have; /* bytes; 0 at first */
	char                block[WORDS_BYTES];
};

static bool
word_read(struct words *w, uint64_t at, uint32_t *ret)
{
	uint64_t from = at & ~(uint64_t)(WORDS_BYTES - 1);

	if (!w->have || from != w->from) {
		w->have = 0;
		if (image_read_some(w->img, from, w->block, WORDS_BYTES, &w->have) < 0)
			return false;
		w->from = from;
	}
	if (at % sizeof(*ret) || at - from + sizeof(*ret) > w->have)
		return false;
	memcpy(ret, w->block + (at - from), sizeof(*ret));
	return true;
}

/* How many symbols there are, by the newer hash table: the last chain's end tells. */
static uint32_t
symbols_by_hash(const struct image *img, uint64_t at)
{
	uint32_t     head[4], last = 0, bucket, word = 0; /* buckets, first symbol, bloom words, shift */
	uint64_t     buckets, chains;
	struct words w = { .img = img };

	if (image_read(img, at, head, sizeof(head)) < 0 || head[0] > SYMBOLS_MAX)
		return 0;
	buckets = at + sizeof(head) + (uint64_t)head[2] * sizeof(ElfW(Addr));
	chains = buckets + (uint64_t)head[0] * sizeof(bucket);
	for (uint32_t i = 0; i < head[0]; i++) {
		if (!word_read(&w, buckets + (uint64_t)i * sizeof(bucket), &bucket))
			return 0;
		if (bucket > last)
			last = bucket;
	}
	for (; last >= head[1] && last < SYMBOLS_MAX && !(word & 1); last++)
		if (!word_read(&w, chains + (uint64_t)(last - head[1]) * sizeof(word), &word))
			return 0;
	return last;
}

/* The loader has relocated the addresses there, but not in every object. */
static uint64_t
offset_of(const struct image *img, uint64_t first, uint64_t address)
{
	return address >= img->address && address - img->address < img->size ? address - img->address : address - first;
}

static int
dynamic_read(struct image *img, uint64_t first, const ElfW(Phdr) *dynamic)
{
	uint64_t  symbols = 0, strings = 0, strings_size = 0, hash = 0, gnu_hash = 0;
	uint32_t  head[2], count = 0;
	ElfW(Dyn) d;

	for (uint64_t at = 0; at < DYNAMIC_MAX * sizeof(d) && at + sizeof(d) <= dynamic->p_memsz; at += sizeof(d)) {
		if (image_read(img, dynamic->p_vaddr - first + at, &d, sizeof(d)) < 0 || d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_SYMTAB)
			symbols = offset_of(img, first, d.d_un.d_ptr);
		else if (d.d_tag == DT_STRTAB)
			strings = offset_of(img, first, d.d_un.d_ptr);
		else if (d.d_tag == DT_STRSZ)
			strings_size = d.d_un.d_val;
		else if (d.d_tag == DT_HASH)
			hash = offset_of(img, first, d.d_un.d_ptr);
		else if (d.d_tag == DT_GNU_HASH)
			gnu_hash = offset_of(img, first, d.d_un.d_ptr);
	}
	if (hash && image_read(img, hash, head, sizeof(head)) == 0)
		count = head[1];
	else if (gnu_hash)
		count = symbols_by_hash(img, gnu_hash);
	if (!symbols || !strings || !count)
		return -ENOENT;
	img->symbols = (ElfW(Shdr)){ .sh_type = SHT_DYNSYM, .sh_offset = symbols, .sh_entsize = sizeof(ElfW(Sym)),
				     .sh_size = (uint64_t)count * sizeof(ElfW(Sym)), .sh_link = 2 };
	img->strings = (ElfW(Shdr)){ .sh_type = SHT_STRTAB, .sh_offset = strings, .sh_size = strings_size };
	return 0;
}

/* .eh_frame, which PT_GNU_EH_FRAME names: up to its segment's end, where a length of 0 ends it. */
static void
frames_read(struct image *img, uint64_t first, uint64_t header)
{
	uint8_t    head[8];
	int32_t    offset;
	uint64_t   vaddr;
	ElfW(Phdr) p;

	if (image_read(img, header - first, head, sizeof(head)) < 0 || head[0] != 1 || head[1] != PCREL_SDATA4)
		return;
	memcpy(&offset, head + 4, sizeof(offset));
	vaddr = header + 4 + (uint64_t)(int64_t)offset;
	for (unsigned i = 0; i < segment_count(img) && segment(img, i, &p) == 0; i++)
		if (p.p_type == PT_LOAD && vaddr >= p.p_vaddr && vaddr - p.p_vaddr < p.p_filesz)
			img->frames = (ElfW(Shdr)){ .sh_type = SHT_PROGBITS, .sh_addr = vaddr, .sh_offset = vaddr - first,
						    .sh_size = p.p_filesz - (vaddr - p.p_vaddr) };
}

int
image_open_mapped(struct image *img, uintptr_t address, size_t size)
{
	ElfW(Phdr) p, dynamic = { .p_type = PT_NULL };
	uint64_t   first = 0, end = 0, frames = 0;
	int        r = image_open_memory(img, address, size);

	for (unsigned i = 0; !r && i < segment_count(img); i++) {
		r = segment(img, i, &p);
		if (r < 0)
			break;
		if (p.p_type == PT_LOAD && !end && p.p_offset)
			return -ENOEXEC;
		if (p.p_type == PT_LOAD && !end)
			first = p.p_vaddr;
		if (p.p_type == PT_LOAD && p.p_vaddr - first + p.p_memsz > end)
			end = p.p_vaddr - first + p.p_memsz;
		if (p.p_type == PT_DYNAMIC)
			dynamic = p;
		if (p.p_type == PT_GNU_EH_FRAME)
			frames = p.p_vaddr;
	}
	if (r < 0)
		return r;
	img->section_count = 3;
	img->mapped = true;
	img->size = end;
	if (dynamic.p_type == PT_DYNAMIC)
		dynamic_read(img, first, &dynamic); /* without one it has no names */
	if (frames)
		frames_read(img, first, frames);
	return 0;
}

int
image_section(const struct image *img, uint32_t index, ElfW(Shdr) *ret)
{
	if (img->mapped && (index == 1 || index == 2)) {
		*ret = index == 1 ? img->symbols : img->strings;
		return 0;
	}
	if (img->mapped)
		return -ENOENT;
	if (index >= img->section_count)
		return -ENOENT;
	return image_read(img, img->header.e_shoff + (uint64_t)index * sizeof(*ret), ret, sizeof(*ret));
}

int
image_section_find(const struct image *img, const char *name, ElfW(Shdr) *ret)
{
	ElfW(Shdr) names, s;
	char       have[NAME_MAX_BYTES];
	size_t     want = strlen(name) + 1, n = 0;
	int        r = img->mapped ? -ENOENT : image_section(img, img->section_names, &names);

	if (img->mapped && img->frames.sh_size && strcmp(name, ".eh_frame") == 0) {
		*ret = img->frames;
		return 0;
	}
	if (r < 0)
		return r;
	for (uint32_t i = 1; i < img->section_count; i++) {
		r = image_section(img, i, &s);
		if (r < 0)
			return r;
		if (s.sh_type == SHT_NOBITS || s.sh_name >= names.sh_size)
			continue;
		r = image_read_some(img, names.sh_offset + s.sh_name, have, sizeof(have), &n);
		if (r < 0 || n < want || memcmp(have, name, want))
			continue;
		*ret = s;
		return 0;
	}
	return -ENOENT;
}

static int
notes_read(const struct image *img, uint64_t offset, uint64_t size, uint64_t align, char *buf)
{
	unsigned char notes[NOTES_MAX];
	size_t        n = 0;

	if (image_read_some(img, offset, notes, size < NOTES_MAX ? (size_t)size : NOTES_MAX, &n) < 0)
		return -ENOENT;
	return build_id_find(notes, n, align == 8 ? 8 : 4, buf) ? 0 : -ENOENT;
}

int
image_build_id(const struct image *img, char *buf)
{
	ElfW(Phdr) p;
	ElfW(Shdr) s;

	for (unsigned i = 0; i < segment_count(img); i++)
		if (!segment(img, i, &p) && p.p_type == PT_NOTE &&
		    !notes_read(img, p.p_offset, p.p_filesz, p.p_align, buf))
			return 0;
	/* Objects without segments for it: what objcopy leaves for debuggers. */
	if (!image_section_find(img, ".note.gnu.build-id", &s) && s.sh_type == SHT_NOTE)
		return notes_read(img, s.sh_offset, s.sh_size, s.sh_addralign, buf);
	return -ENOENT;
}

bool
image_vaddr(const struct image *img, uint64_t offset, uint64_t *ret_vaddr)
{
	const uint64_t page_size = (uint64_t)getpagesize();

	for (unsigned i = 0; i < img->load_count; i++) {
		const struct image_load *l = &img->loads[i];
		uint64_t                 page = l->offset & (page_size - 1); /* mapped from the page's start */

		if (offset >= l->offset - page && offset - (l->offset - page) < l->size + page) {
			*ret_vaddr = l->vaddr + (offset - l->offset);
			return true;
		}
	}
	return false;
}

bool
image_is_code(const struct image *img, uint64_t vaddr)
{
	for (unsigned i = 0; i < img->load_count; i++)
		if (vaddr >= img->loads[i].vaddr && vaddr - img->loads[i].vaddr < img->loads[i].size)
			return true;
	return false;
}
