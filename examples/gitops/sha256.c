/*
 * sha256.c - SHA-256 as FIPS 180-4 describes it, for telling file contents apart.
 *
 * The controllers spend most of their time here, which is what their CPU profiles
 * show.  Why not a faster hash: a revision is a name people may rely on.
 *
 * Tests: tests/examples/test_gitops.c holds the standard's examples.
 */
#include "gitops.h"

#include <string.h>

static const uint32_t k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t
rotate(uint32_t x, unsigned n)
{
	return x >> n | x << (32 - n);
}

/* Its own frame in a profile. */
static __attribute__((noinline)) void
gitops_hash_block(uint32_t state[8], const unsigned char *p)
{
	uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
	uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
	uint32_t w[64], t1, t2;

	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
	for (int i = 16; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] +
			(rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3) +
			(rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
	for (int i = 0; i < 64; i++) {
		t1 = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + k[i] + w[i];
		t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
		h = g, g = f, f = e, e = d + t1;
		d = c, c = b, b = a, a = t1 + t2;
	}
	state[0] += a, state[1] += b, state[2] += c, state[3] += d;
	state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

void
gitops_hash_begin(struct gitops_hash *h)
{
	static const uint32_t initial[8] = {
		0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
	};

	memcpy(h->state, initial, sizeof initial);
	h->bytes = 0;
}

void
gitops_hash_add(struct gitops_hash *h, const void *data, size_t size)
{
	const unsigned char *p = data;
	size_t held = h->bytes % 64;

	h->bytes += size;
	if (held + size < 64) {
		memcpy(h->block + held, p, size);
		return;
	}
	if (held != 0) {
		memcpy(h->block + held, p, 64 - held);
		gitops_hash_block(h->state, h->block);
		p += 64 - held;
		size -= 64 - held;
	}
	for (; size >= 64; p += 64, size -= 64)
		gitops_hash_block(h->state, p);
	memcpy(h->block, p, size);
}

void
gitops_hash_end(struct gitops_hash *h, char ret_hex[GITOPS_HASH_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	static const unsigned char padding[64] = { 0x80 };
	uint64_t bits = h->bytes * 8;
	unsigned char length[8];

	for (int i = 0; i < 8; i++)
		length[i] = (unsigned char)(bits >> (56 - 8 * i));
	gitops_hash_add(h, padding, 1 + (119 - h->bytes % 64) % 64);
	gitops_hash_add(h, length, sizeof length);
	for (int i = 0; i < 64; i++)
		ret_hex[i] = digits[h->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
	ret_hex[64] = '\0';
}
