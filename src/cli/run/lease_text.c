#include "cli/run/lease_text.h"

#include <inttypes.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/num.h"
#include "base/str.h"
#include "base/visible.h"
#include "cli/cli.h"
#include "engines/engines.h"
#include "proto/davit_node_v1.pb-c.h"

#define TEXT_BYTES_MAX (64u << 10)
/* As many holders as a person reads on one line. */
#define HOLDERS_SHOWN 3u

/* ---- waiting ---- */

static void print_ordinal(uint32_t n, struct dv_buf *buf)
{
    static const char *const endings[] = {"th", "st", "nd", "rd"};
    uint32_t last = n % 10;
    bool is_teen = n % 100 >= 11 && n % 100 <= 13;

    dv_buf_printf(buf, "%u%s", n, last < DV_COUNT(endings) && !is_teen ? endings[last] : "th");
}

static void print_holder(const NodeV1__LeaseHolder *holder, int64_t now_ms, bool has_times,
                         struct dv_buf *buf)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const char *separator = "";

    dv_buf_add_visible(buf, dv_str_from_c(holder->name));
    dv_buf_add_c(buf, " (");
    if (holder->lease[0] == '\0') {
        dv_buf_add_c(buf, "pod");
        separator = ", ";
    } else if (holder->user[0] != '\0') {
        dv_buf_add_c(buf, "user ");
        dv_buf_add_visible(buf, dv_str_from_c(holder->user));
        separator = ", ";
    }
    if (holder->pid != 0) {
        dv_buf_printf(buf, "%spid %u", separator, holder->pid);
        separator = ", ";
    }
    if (has_times && holder->since_ms > 0)
        dv_buf_printf(buf, "%s%s", separator, dv_cli_age_at(holder->since_ms, now_ms, arena));
    dv_buf_add_char(buf, ')');
}

static void print_holders(const NodeV1__LeaseWaiting *waiting, int64_t now_ms, bool has_times,
                          struct dv_buf *buf)
{
    size_t n_shown = dv_size_min(waiting->n_holders, HOLDERS_SHOWN);
    size_t n_more = waiting->n_more_holders + waiting->n_holders - n_shown;

    for (size_t i = 0; i < n_shown; i++) {
        bool is_last = i + 1 == n_shown && n_more == 0;

        dv_buf_add_c(buf, i == 0 ? "; held by " : is_last ? " and " : ", ");
        print_holder(waiting->holders[i], now_ms, has_times, buf);
    }
    if (n_more > 0)
        dv_buf_printf(buf, "%s%zu more", n_shown > 0 ? " and " : "; held by ", n_more);
}

void dv_lease_print_waiting(const NodeV1__LeaseWaiting *waiting, int64_t now_ms, bool has_times,
                            struct dv_buf *buf)
{
    if (waiting->n_wanted > 0) {
        if (waiting->has_count)
            dv_buf_printf(buf, "waiting: %" PRIu64 " of %" PRIu64 " wanted ", waiting->n_free,
                          waiting->n_wanted);
        else
            dv_buf_printf(buf, "waiting for %" PRIu64 " ", waiting->n_wanted);
        dv_buf_add_visible(buf, dv_str_from_c(waiting->short_of));
        if (waiting->has_count)
            dv_buf_add_c(buf, waiting->n_wanted == 1 ? " is free" : " are free");
        print_holders(waiting, now_ms, has_times, buf);
    } else {
        dv_buf_add_c(buf, "waiting for ");
        dv_buf_add_visible(buf, waiting->awaited[0] != '\0' ? dv_str_from_c(waiting->awaited)
                                                            : DV_STR("those before"));
    }
    if (waiting->place == 1) {
        dv_buf_add_c(buf, "; you are next");
    } else if (waiting->place > 1) {
        dv_buf_add_c(buf, "; you are ");
        print_ordinal(waiting->place, buf);
        dv_buf_add_c(buf, " in the queue");
    }
}

void dv_lease_print_cut(const char *line, size_t columns, struct dv_buf *buf)
{
    static const size_t dots = 3;
    dv_str text = dv_str_from_c(line);
    dv_str rest = text;
    size_t n_chars = 0;
    size_t n_kept = 0; /* bytes of the characters that fit before the dots */

    while (rest.n > 0) {
        size_t n = dv_size_max(dv_str_utf8_char(rest), 1);

        rest = dv_str_slice(rest, n, rest.n);
        if (++n_chars + dots <= columns)
            n_kept = text.n - rest.n;
    }
    if (columns == 0 || n_chars <= columns) {
        dv_buf_add(buf, text);
        return;
    }
    dv_buf_add(buf, dv_str_slice(text, 0, n_kept));
    dv_buf_add_c(buf, &"..."[dots - dv_size_min(dots, columns)]);
}

/* ---- devices ---- */

void dv_lease_print_devices(const NodeV1__Lease *lease, struct dv_buf *buf)
{
    const char *separator = "";

    for (size_t i = 0; i < lease->n_resources; i++) {
        const NodeV1__ResourceDevices *resource = lease->resources[i];

        dv_buf_printf(buf, "%s%s", separator, resource->resource);
        for (size_t k = 0; k < resource->n_device_ids; k++)
            dv_buf_printf(buf, "%s%s", k == 0 ? "=" : ",", resource->device_ids[k]);
        separator = " ";
    }
    for (size_t i = 0; i < lease->n_claims; i++) {
        dv_buf_printf(buf, "%s%s/%s/%s", separator, lease->claims[i]->driver,
                      lease->claims[i]->pool, lease->claims[i]->device);
        separator = " ";
    }
}

/* ---- the environment ---- */

static void print_variable(dv_str name, dv_str value, struct dv_buf *buf)
{
    dv_buf_add(buf, name);
    dv_buf_add_char(buf, '=');
    if (value.n > 0)
        dv_engine_print_words(&value, 1, buf); /* systemd reads the quotes of a shell, too */
    dv_buf_add_char(buf, '\n');
}

static void print_numbered(const char *name, size_t number, dv_str value, struct dv_arena *arena,
                           struct dv_buf *buf)
{
    print_variable(dv_str_printf(arena, "%s_%zu", name, number), value, buf);
}

void dv_lease_print_env(const NodeV1__LeaseGrant *grant, struct dv_buf *buf)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;

    dv_buf_init(&text, TEXT_BYTES_MAX);
    dv_lease_print_devices(grant->lease, &text);
    print_variable(DV_STR("DAVIT_LEASE"), dv_str_from_c(grant->lease->id), buf);
    print_variable(DV_STR("DAVIT_DEVICES"), dv_buf_str(&text), buf);
    for (size_t i = 0; i < grant->n_cdi_devices; i++)
        print_numbered("DAVIT_CDI", i, dv_str_from_c(grant->cdi_devices[i]), arena, buf);
    for (size_t i = 0; i < grant->n_devices; i++)
        print_numbered(
            "DAVIT_NODE", i,
            dv_str_printf(
                arena, "%s:%s:%s", grant->devices[i]->host_path, grant->devices[i]->container_path,
                grant->devices[i]->permissions[0] != '\0' ? grant->devices[i]->permissions : "rwm"),
            arena, buf);
    for (size_t i = 0; i < grant->n_envs; i++)
        print_variable(dv_str_from_c(grant->envs[i]->key), dv_str_from_c(grant->envs[i]->value),
                       buf);
}

/* ---- the end ---- */

void dv_lease_print_end(const NodeV1__LeaseEnd *end, struct dv_buf *buf)
{
    static const struct {
        const char *reason;
        const char *text;
    } texts[] = {
        {"MaxTime",      "its time is over"     },
        {"EndedByUser",  "its user has ended it"},
        {"EndedByAdmin", "an admin has ended it"},
        {"DeviceLost",   "a device is gone"     },
        {"Given",        "it was given back"    },
        {"OwnerEnded",   "its owner has ended"  },
    };
    const char *text = end->reason;

    for (size_t i = 0; i < DV_COUNT(texts); i++)
        if (dv_str_eq(dv_str_from_c(end->reason), dv_str_from_c(texts[i].reason)))
            text = texts[i].text;
    dv_buf_add_visible(buf, dv_str_from_c(text));
    if (end->by[0] != '\0') {
        dv_buf_add_c(buf, " (");
        dv_buf_add_visible(buf, dv_str_from_c(end->by));
        dv_buf_add_char(buf, ')');
    }
    if (end->message[0] != '\0') {
        dv_buf_add_c(buf, ": ");
        dv_buf_add_visible(buf, dv_str_from_c(end->message));
    }
}
