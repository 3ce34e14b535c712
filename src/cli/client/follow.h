/* follow.h - objects, and every change of them, as the server tells it. */
#ifndef DV_CLI_FOLLOW_H
#define DV_CLI_FOLLOW_H

#include <stdbool.h>

#include "cli/cli.h"
#include "cli/client/cli_kinds.h"

struct dv_arena;
struct dv_cli_api;
struct dv_json;
struct dv_object;

struct dv_cli_follow {
    struct dv_cli_target target;
    /* An object is there, has changed, or is gone; both are in `arena` and borrowed, but the texts
     * in the arena live until `pause` has returned. */
    void (*changed)(void *ctx, const struct dv_object *object, struct dv_json *doc,
                    struct dv_arena *arena);
    bool (*pause)(void *ctx); /* nothing more for now; false: nobody reads it any more */
    void *ctx;
};

/* Lists, then watches from there, until the server fails, which is printed, or nobody reads it. */
enum dv_exit dv_cli_follow(struct dv_cli_api *api, const struct dv_cli_follow *follow);

#endif
