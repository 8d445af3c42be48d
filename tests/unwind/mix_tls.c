/*
 * mix_tls.c - libssl and libcrypto, whose assembly describes its frames by
 * expressions.  Through dlopen() and without headers: where they are is no matter of
 * how this was built.
 *
 * Two ends of one connection in memory agree on a key that both know (TLS 1.2, PSK).
 */
#include <config.h>

#include "mix.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define FUNCTIONS(X)                                                                               \
	X(void *, TLS_method, (void))                                                              \
	X(void *, SSL_CTX_new, (void *))                                                           \
	X(long, SSL_CTX_ctrl, (void *, int, long, void *))                                         \
	X(int, SSL_CTX_set_cipher_list, (void *, const char *))                                    \
	X(void, SSL_CTX_set_psk_client_callback,                                                   \
	  (void *, unsigned (*)(void *, const char *, char *, unsigned, unsigned char *, unsigned))) \
	X(void, SSL_CTX_set_psk_server_callback,                                                   \
	  (void *, unsigned (*)(void *, const char *, unsigned char *, unsigned)))                 \
	X(void *, SSL_new, (void *))                                                               \
	X(void, SSL_free, (void *))                                                                \
	X(void, SSL_set_bio, (void *, void *, void *))                                             \
	X(void, SSL_set_connect_state, (void *))                                                   \
	X(void, SSL_set_accept_state, (void *))                                                    \
	X(int, SSL_do_handshake, (void *))                                                         \
	X(int, SSL_write, (void *, const void *, int))                                             \
	X(int, SSL_read, (void *, void *, int))                                                    \
	X(int, BIO_new_bio_pair, (void **, size_t, void **, size_t))                               \
	X(void *, EVP_sha1, (void))                                                                \
	X(void *, EVP_sha256, (void))                                                              \
	X(void *, EVP_sha512, (void))                                                              \
	X(void *, EVP_sha3_256, (void))                                                            \
	X(int, EVP_Digest, (const void *, size_t, unsigned char *, unsigned *, const void *, void *)) \
	X(void *, EVP_aes_128_cbc, (void))                                                         \
	X(void *, EVP_aes_256_gcm, (void))                                                         \
	X(void *, EVP_chacha20_poly1305, (void))                                                   \
	X(void *, EVP_CIPHER_CTX_new, (void))                                                      \
	X(void, EVP_CIPHER_CTX_free, (void *))                                                     \
	X(int, EVP_EncryptInit_ex, (void *, const void *, void *, const unsigned char *, const unsigned char *)) \
	X(int, EVP_EncryptUpdate, (void *, unsigned char *, int *, const unsigned char *, int))     \
	X(void *, EVP_PKEY_Q_keygen, (void *, const char *, const char *, ...))                    \
	X(void, EVP_PKEY_free, (void *))                                                           \
	X(void *, BN_new, (void))                                                                  \
	X(void, BN_free, (void *))                                                                 \
	X(void *, BN_bin2bn, (const unsigned char *, int, void *))                                 \
	X(void *, BN_CTX_new, (void))                                                              \
	X(void, BN_CTX_free, (void *))                                                             \
	X(int, BN_mod_exp, (void *, const void *, const void *, const void *, void *))

#define DECLARE(result, name, parameters) static result(*name) parameters;
FUNCTIONS(DECLARE)

#define TLS1_2           0x0303
#define CTRL_MAX_VERSION 124
#define KEY_BYTES        16

static void *context;

static unsigned
client_key(void *ssl, const char *hint, char *identity, unsigned identity_max, unsigned char *key, unsigned key_max)
{
	(void)ssl;
	(void)hint;
	if (identity_max < 3 || key_max < KEY_BYTES)
		return 0;
	strcpy(identity, "me");
	memset(key, 7, KEY_BYTES);
	return KEY_BYTES;
}

static unsigned
server_key(void *ssl, const char *identity, unsigned char *key, unsigned key_max)
{
	(void)ssl;
	if (strcmp(identity, "me") != 0 || key_max < KEY_BYTES)
		return 0;
	memset(key, 7, KEY_BYTES);
	return KEY_BYTES;
}

const char *
mix_tls_open(void)
{
	void *ssl = dlopen("libssl.so.3", RTLD_NOW | RTLD_GLOBAL), *crypto = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_GLOBAL);

	if (!ssl || !crypto)
		return "libssl.so.3 and libcrypto.so.3 are not here";
#define FIND(result, name, parameters)                                            \
	*(void **)&name = dlsym(!strncmp(#name, "SSL", 3) || !strncmp(#name, "TLS", 3) ? ssl : crypto, #name); \
	if (!name)                                                                \
		return "libcrypto has no " #name;
	FUNCTIONS(FIND)
	context = SSL_CTX_new(TLS_method());
	if (!context || SSL_CTX_ctrl(context, CTRL_MAX_VERSION, TLS1_2, NULL) != 1 || SSL_CTX_set_cipher_list(context, "PSK") != 1)
		return "libssl offers no PSK";
	SSL_CTX_set_psk_client_callback(context, client_key);
	SSL_CTX_set_psk_server_callback(context, server_key);
	return "";
}

static void
talk(const unsigned char *data, int size)
{
	unsigned char got[512];
	void         *client = SSL_new(context), *server = SSL_new(context), *one, *other;

	BIO_new_bio_pair(&one, 0, &other, 0);
	SSL_set_bio(client, one, one);
	SSL_set_bio(server, other, other);
	SSL_set_connect_state(client);
	SSL_set_accept_state(server);
	for (int i = 0, done = 0; i < 10 && done < 2; i++)
		done = (SSL_do_handshake(client) == 1) + (SSL_do_handshake(server) == 1);
	for (int i = 0; i < 4; i++) {
		SSL_write(client, data, size);
		SSL_read(server, got, sizeof(got));
	}
	SSL_free(client);
	SSL_free(server);
}

static void
encrypt(const void *cipher, const unsigned char *data, int size)
{
	unsigned char out[4096 + 64];
	int           n;
	void         *c = EVP_CIPHER_CTX_new();

	EVP_EncryptInit_ex(c, cipher, NULL, data, data);
	for (int i = 0; i < 4; i++)
		EVP_EncryptUpdate(c, out, &n, data, size);
	EVP_CIPHER_CTX_free(c);
}

static void
compute(const unsigned char *data)
{
	void *base = BN_bin2bn(data, 128, NULL), *power = BN_bin2bn(data + 128, 16, NULL), *modulus = BN_bin2bn(data + 255, 128, NULL);
	void *result = BN_new(), *scratch = BN_CTX_new();

	BN_mod_exp(result, base, power, modulus, scratch);
	BN_free(base);
	BN_free(power);
	BN_free(modulus);
	BN_free(result);
	BN_CTX_free(scratch);
	EVP_PKEY_free(EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256"));
	EVP_PKEY_free(EVP_PKEY_Q_keygen(NULL, NULL, "X25519"));
}

void
mix_tls(void)
{
	unsigned char data[4096], digest[64];
	const void   *digests[] = { EVP_sha1(), EVP_sha256(), EVP_sha512(), EVP_sha3_256() };
	unsigned      size;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i * 7 + 1) | 1;
	for (size_t i = 0; i < sizeof(digests) / sizeof(digests[0]); i++)
		EVP_Digest(data, sizeof(data), digest, &size, digests[i], NULL);
	encrypt(EVP_aes_128_cbc(), data, sizeof(data));
	encrypt(EVP_aes_256_gcm(), data, sizeof(data));
	encrypt(EVP_chacha20_poly1305(), data, sizeof(data));
	compute(data);
	talk(data, 400);
}
