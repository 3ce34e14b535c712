/* pki.h - makes and reads the CA, the server's certificate and the admin's kubeconfig. */
#ifndef DV_DAEMON_PKI_H
#define DV_DAEMON_PKI_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "rest/rest.h"

struct dv_arena;
struct dv_err;

/* Loads the CA of `<state_dir>/pki`, and makes it when there is none or its end is near. Blocks. */
DV_CHECKED bool dv_pki_load_ca(dv_str state_dir, uint64_t now_ns, struct dv_arena *arena,
                               struct dv_rest_cert *ca, struct dv_err *err);
/* Loads the keys of signed tokens of `<state_dir>/pki`, PEM texts in the arena: the first, in
 * tokens.key, signs, and is made when there is none; those in tokens-*.key and tokens-*.pub, in the
 * order of their names, still verify. Blocks. */
DV_CHECKED bool dv_pki_load_token_keys(dv_str state_dir, struct dv_arena *arena, dv_str **pems,
                                       size_t *n_pems, struct dv_err *err);
/* Makes a certificate for this machine's names, valid for a year. It is kept in memory only. */
DV_CHECKED bool dv_pki_make_server(const struct dv_rest_cert *ca, dv_str node_name, dv_str listen,
                                   uint64_t now_ns, struct dv_arena *arena,
                                   struct dv_rest_cert *cert, struct dv_err *err);

/* Returns the token in an admin.kubeconfig; empty when there is no such file, or none in it. */
dv_str dv_pki_read_token(dv_str path, struct dv_arena *arena);
/* Prints a kubeconfig: for https with the CA, or for http when that is empty. */
dv_str dv_pki_print_kubeconfig(dv_str server, dv_str ca, dv_str user, dv_str token,
                               struct dv_arena *arena);

/* Returns an address of this machine at which who listens so is reached by its pods: the one in
 * "ADDRESS:PORT", or where that stands for all, one that is not the loopback's. In the arena. */
dv_str dv_pki_reached_at(dv_str listen, struct dv_arena *arena);
/* The address in "ADDRESS:PORT", without the brackets that IPv6 has there. */
dv_str dv_pki_address(dv_str listen);

#endif
