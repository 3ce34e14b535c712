/* api_exchange.h - the parts of an exchange with the API server that all kinds of them share. */
#ifndef DV_CLI_API_EXCHANGE_H
#define DV_CLI_API_EXCHANGE_H

#include <stdbool.h>

#include "base/str.h"

struct dv_api_status;
struct dv_api_version;
struct dv_arena;
struct dv_buf;
struct dv_cli_api;
struct dv_cli_ask;
struct dv_err;

/* A path with its query is no longer. */
#define DV_CLI_TARGET_BYTES_MAX (64u << 10)

/* Prints path and query; `version` is that of the ask's kind. */
void dv_cli_ask_print(const struct dv_cli_ask *ask, const struct dv_api_version *version,
                      struct dv_buf *buf);
/* Reads the body of an answer that is no success; any text will do. */
const struct dv_api_status *dv_cli_read_failure(unsigned code, dv_str body, struct dv_arena *arena);
/* Prints why there was no answer, and sets how the program ends. Returns false. */
bool dv_cli_api_explain(struct dv_cli_api *api, const struct dv_err *err);

#endif
