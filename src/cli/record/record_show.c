#include "cli/record/record_show.h"

#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "base/visible.h"
#include "cli/record/tape.h"
#include "record/message.h"
#include "record/record.h"

#define US_PER_MS 1000u
#define NS_PER_US 1000u
#define MESSAGE_TEXT_MAX (512u * 1024u * 1024u)

static uint64_t took_us(const struct dv_record *end, const struct dv_tape_record *started)
{
    if (!started || end->clock_ns < started->r.clock_ns)
        return 0;
    return (end->clock_ns - started->r.clock_ns) / NS_PER_US;
}

/* ---- text ---- */

static void add_peer(const struct dv_record *r, struct dv_buf *buf)
{
    if (r->has_peer)
        dv_buf_printf(buf, " (pid %d, uid %u)", r->pid, r->uid);
}

static void add_status(const struct dv_record *r, struct dv_buf *buf)
{
    dv_buf_add_c(buf, dv_code_name(r->status));
    if (r->text.n > 0) {
        dv_buf_add_c(buf, ": ");
        dv_buf_add_visible(buf, r->text);
    }
}

static void add_call(const struct dv_record *r, const char *arrow, struct dv_buf *buf)
{
    dv_buf_printf(buf, "%s #%llu ", arrow, (unsigned long long)r->call);
    dv_buf_add_visible(buf, dv_record_method_name(r->method));
}

static void add_message(const struct dv_record *r, struct dv_buf *buf)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;

    dv_buf_init(&text, MESSAGE_TEXT_MAX);
    if (r->message.p) {
        dv_record_print_message(r, &text);
        dv_buf_add_char(buf, ' ');
        dv_buf_add_visible(buf, dv_buf_str(&text));
    }
    if (r->is_blanked)
        dv_buf_add_c(buf, " (blanked in part)");
}

static void add_begin(const struct dv_record *r, struct dv_buf *buf)
{
    add_call(r, r->is_served ? "<-" : "->", buf);
    if (r->has_timeout)
        dv_buf_printf(buf, " within %llu ms", (unsigned long long)r->timeout_ms);
    if (r->pod_uid.n > 0) {
        dv_buf_add_c(buf, " for pod ");
        dv_buf_add_visible(buf, r->pod_uid);
    }
    if (r->container.n > 0) {
        dv_buf_add_c(buf, " container ");
        dv_buf_add_visible(buf, r->container);
    }
    if (r->is_served)
        add_peer(r, buf);
    add_message(r, buf);
}

static void add_end(const struct dv_record *r, const struct dv_tape_record *started,
                    struct dv_buf *buf)
{
    uint64_t us = took_us(r, started);

    add_call(r, "==", buf);
    dv_buf_add_char(buf, ' ');
    add_status(r, buf);
    if (us > 0)
        dv_buf_printf(buf, " after %llu.%03llu ms", (unsigned long long)(us / US_PER_MS),
                      (unsigned long long)(us % US_PER_MS));
    if (r->n_tries > 1)
        dv_buf_printf(buf, " (begun on %u connections)", r->n_tries);
}

static void add_what(const struct dv_record *r, const struct dv_tape_record *started,
                     struct dv_buf *buf)
{
    switch (r->kind) {
    case DV_RECORD_FILE:
    case DV_RECORD_NOTE:
        dv_buf_add_c(buf, r->kind == DV_RECORD_FILE ? "## " : "# ");
        dv_buf_add_visible(buf, r->text);
        break;
    case DV_RECORD_CONNECTED:
        dv_buf_add_c(buf, r->is_served ? "connected to us at " : "connected to ");
        dv_buf_add_visible(buf, r->socket);
        add_peer(r, buf);
        break;
    case DV_RECORD_CONNECT_FAILED:
    case DV_RECORD_DISCONNECTED:
    case DV_RECORD_REFUSED:
        dv_buf_printf(buf, "%s: ", dv_record_kind_name(r->kind));
        add_status(r, buf);
        add_peer(r, buf);
        break;
    case DV_RECORD_CALL:
        add_begin(r, buf);
        break;
    case DV_RECORD_MESSAGE:
        add_call(r, r->is_sent ? "->" : "<-", buf);
        add_message(r, buf);
        break;
    case DV_RECORD_END:
        add_end(r, started, buf);
        break;
    case DV_RECORD_LOST:
        dv_buf_printf(buf, "!! %llu records are missing here", (unsigned long long)r->n_lost);
        break;
    default:
        dv_buf_printf(buf, "a record of the kind %d, which this davit does not know", (int)r->kind);
    }
}

void dv_record_print_text(const struct dv_tape_record *record, const struct dv_tape_record *started,
                          struct dv_buf *buf)
{
    const struct dv_record *r = &record->r;
    char time[DV_TIME_BYTES];

    dv_time_print(r->wall_ns, time);
    dv_buf_add_c(buf, time);
    dv_buf_add_char(buf, ' ');
    if (r->name.n > 0) {
        dv_buf_add_visible(buf, r->name);
        dv_buf_add_char(buf, ' ');
    }
    add_what(r, started, buf);
    if (r->is_repeated)
        dv_buf_add_c(buf, " (repeated from an earlier file)");
    dv_buf_add_char(buf, '\n');
}

/* ---- JSON ---- */

static void add_json_text(struct dv_buf *buf, const char *key, dv_str value)
{
    if (value.n == 0)
        return;
    dv_buf_printf(buf, ",\"%s\":", key);
    dv_buf_add_json(buf, value);
}

static void add_json_number(struct dv_buf *buf, const char *key, bool is_there, uint64_t value)
{
    if (is_there)
        dv_buf_printf(buf, ",\"%s\":%llu", key, (unsigned long long)value);
}

static void add_json_flag(struct dv_buf *buf, const char *key, bool value)
{
    if (value)
        dv_buf_printf(buf, ",\"%s\":true", key);
}

void dv_record_print_json(const struct dv_tape_record *record, const struct dv_tape_record *started,
                          struct dv_buf *buf)
{
    const struct dv_record *r = &record->r;
    bool has_status = r->kind == DV_RECORD_END || r->status != DV_OK;
    char time[DV_TIME_BYTES];

    dv_time_print(r->wall_ns, time);
    dv_buf_printf(buf, "{\"kind\":\"%s\",\"time\":\"%s\"", dv_record_kind_name(r->kind), time);
    add_json_number(buf, "clockNs", r->clock_ns > 0, r->clock_ns);
    add_json_number(buf, "connection", r->kind != DV_RECORD_FILE && r->connection > 0,
                    r->connection);
    add_json_number(buf, "call", r->call > 0, r->call);
    add_json_text(buf, "name", r->name);
    add_json_text(buf, "socket", r->socket);
    add_json_text(buf, "method", r->method);
    if (r->call > 0)
        dv_buf_printf(buf, ",\"from\":\"%s\"", r->is_served ? "plugin" : "agent");
    if (r->message.p)
        dv_buf_printf(buf, ",\"to\":\"%s\"", r->is_sent ? "plugin" : "agent");
    add_json_text(buf, "podUID", r->pod_uid);
    add_json_text(buf, "container", r->container);
    add_json_number(buf, "timeoutMs", r->has_timeout, r->timeout_ms);
    if (r->has_peer)
        dv_buf_printf(buf, ",\"pid\":%d,\"uid\":%u,\"gid\":%u", r->pid, r->uid, r->gid);
    if (r->message.p) {
        dv_buf_add_c(buf, ",\"message\":");
        dv_record_print_message(r, buf);
    }
    add_json_number(buf, "messageBytes", r->message_bytes > 0, r->message_bytes);
    if (has_status)
        dv_buf_printf(buf, ",\"status\":\"%s\"", dv_code_name(r->status));
    add_json_text(buf, "text", r->text);
    add_json_number(buf, "tookUs", r->kind == DV_RECORD_END && started, took_us(r, started));
    add_json_number(buf, "tries", r->n_tries > 0, r->n_tries);
    add_json_number(buf, "lost", r->n_lost > 0, r->n_lost);
    add_json_flag(buf, "blanked", r->is_blanked);
    add_json_flag(buf, "repeated", r->is_repeated);
    dv_buf_add_c(buf, "}\n");
}
