/* pki.h - what clients trust and what they show: the CA, the server's certificate, the admin's
 * kubeconfig. */
#ifndef DV_DAEMON_PKI_H
#define DV_DAEMON_PKI_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "rest/rest.h"

struct dv_arena;
struct dv_err;

/* The CA of `<state_dir>/pki`, made when there is none, or when its end is near. Blocks. */
DV_CHECKED bool dv_pki_load_ca(dv_str state_dir, uint64_t now_ns, struct dv_arena *arena,
                               struct dv_rest_cert *ca, struct dv_err *err);
/* A certificate for this machine's names, for a year. It is in memory alone. */
DV_CHECKED bool dv_pki_make_server(const struct dv_rest_cert *ca, dv_str node_name, dv_str listen,
                                   uint64_t now_ns, struct dv_arena *arena,
                                   struct dv_rest_cert *cert, struct dv_err *err);

/* The token in an admin.kubeconfig; empty when there is no such file, or none in it. */
dv_str dv_pki_read_token(dv_str path, struct dv_arena *arena);
/* A kubeconfig: https with the CA, or http when that is empty. */
dv_str dv_pki_print_kubeconfig(dv_str server, dv_str ca, dv_str user, dv_str token,
                               struct dv_arena *arena);

#endif
