/* tape_filter.c - which records of a recording are wanted. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/record/tape.h"
#include "pb/pb.h"
#include "record/message.h"
#include "record/record.h"

#define N_CODES 17

/* A call or a connection of one run, as the key of a map. */
struct key {
    uint64_t run;
    uint64_t id;
};

static dv_str key_of(const struct dv_tape_record *record, uint64_t id, struct dv_arena *arena)
{
    struct key *key = DV_NEW_ARRAY(arena, struct key, 1);

    *key = (struct key){record->run, id};
    return (dv_str){(const char *)key, sizeof(*key)};
}

/* ---- whose it is ---- */

struct dv_tape_owners {
    struct dv_arena *arena;
    struct dv_map by_call;       /* the text of a name, as a dv_str * */
    struct dv_map by_connection; /* the text of a name, as a dv_str * */
};

struct naming {
    const char *type; /* how its name ends */
    const char *field;
    dv_str name;
};

static bool find_name(void *ctx, const struct dv_pb_text *text, dv_str *replacement)
{
    struct naming *naming = ctx;

    (void)replacement;
    if (text->field && strcmp(text->field, naming->field) == 0 &&
        dv_str_ends_with(dv_str_from_c(text->message), dv_str_from_c(naming->type)))
        naming->name = text->value;
    return false;
}

/* The name in an answer of GetInfo or a request of Register; empty: it is another message. */
static dv_str name_in(const struct dv_record *record, struct dv_arena *arena)
{
    dv_str method = dv_record_method_name(record->method);
    struct naming naming = {"RegisterRequest", "resource_name", DV_STR_NONE};
    struct ProtobufCMessage *message;
    struct dv_err err;

    if (dv_str_eq(method, DV_STR("GetInfo")))
        naming = (struct naming){"PluginInfo", "name", DV_STR_NONE};
    else if (!dv_str_eq(method, DV_STR("Register")))
        return DV_STR_NONE;
    message = record->message.p ? dv_record_decode(record, arena, &err) : NULL;
    if (message)
        dv_pb_edit(message, find_name, &naming, arena);
    return naming.name;
}

static dv_str *keep(dv_str text, struct dv_arena *arena)
{
    dv_str *kept = DV_NEW_ARRAY(arena, dv_str, 1);

    *kept = text;
    return kept;
}

struct dv_tape_owners *dv_tape_owners_new(const struct dv_tape *tape, struct dv_arena *arena)
{
    struct dv_tape_owners *owners = DV_NEW_ARRAY(arena, struct dv_tape_owners, 1);

    owners->arena = arena;
    dv_map_init(&owners->by_call);
    dv_map_init(&owners->by_connection);
    for (size_t i = 0; i < tape->records.n; i++) {
        const struct dv_tape_record *record = &tape->records.v[i];
        dv_str name = name_in(&record->r, arena);

        if (name.n == 0)
            continue;
        (void)dv_map_set(&owners->by_call, key_of(record, record->r.call, arena),
                         keep(name, arena));
        if (!record->r.is_served) /* several resources may be registered over one connection */
            (void)dv_map_set(&owners->by_connection, key_of(record, record->r.connection, arena),
                             keep(name, arena));
    }
    return owners;
}

void dv_tape_owners_fini(struct dv_tape_owners *owners)
{
    dv_map_fini(&owners->by_call);
    dv_map_fini(&owners->by_connection);
}

dv_str dv_tape_owner(const struct dv_tape_owners *owners, const struct dv_tape_record *record)
{
    const struct key call = {record->run, record->r.call};
    const struct key connection = {record->run, record->r.connection};
    const dv_str *name = dv_map_get(&owners->by_call, (dv_str){(const char *)&call, sizeof(call)});

    if (!name)
        name = dv_map_get(&owners->by_connection,
                          (dv_str){(const char *)&connection, sizeof(connection)});
    if (name)
        return *name;
    return record->r.is_served ? DV_STR_NONE : record->r.name;
}

/* ---- what is in it ---- */

struct claim_search {
    dv_str namespace; /* empty: any */
    dv_str name;      /* or UID */
    bool has_namespace;
    bool has_name;
};

static bool look_for_claim(void *ctx, const struct dv_pb_text *text, dv_str *replacement)
{
    struct claim_search *search = ctx;

    (void)replacement;
    search->has_name |= dv_str_eq(text->value, search->name);
    search->has_namespace |= dv_str_eq(text->value, search->namespace);
    return false;
}

static bool has_claim(const struct dv_record *record, dv_str claim)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    size_t slash = dv_str_find_char(claim, '/');
    struct claim_search search = {.name = claim};
    struct ProtobufCMessage *message;
    struct dv_err err;

    if (slash < claim.n) {
        search.namespace = dv_str_slice(claim, 0, slash);
        search.name = dv_str_slice(claim, slash + 1, claim.n);
    }
    if (!record->message.p || dv_str_find(record->message, search.name) == record->message.n)
        return false;
    message = dv_record_decode(record, arena, &err);
    if (message)
        dv_pb_edit(message, look_for_claim, &search, arena);
    return search.has_name && (search.namespace.n == 0 || search.has_namespace);
}

static bool is_status(enum dv_code code, dv_str wanted)
{
    uint64_t number;

    if (dv_str_eq(wanted, DV_STR("error")))
        return code != DV_OK;
    if (dv_str_to_u64(wanted, &number))
        return (uint64_t)code == number;
    return dv_str_eq_nocase(wanted, dv_str_from_c(dv_code_name(code))) ||
           dv_str_eq_nocase(wanted, dv_str_from_c(dv_code_go_name(code)));
}

bool dv_tape_filter_check(const struct dv_tape_filter *filter, struct dv_err *err)
{
    bool is_known = filter->status.n == 0 || dv_str_eq(filter->status, DV_STR("error"));

    for (int code = 0; code < N_CODES; code++)
        is_known |= is_status((enum dv_code)code, filter->status);
    return is_known || dv_fail(err, DV_INVALID_ARGUMENT,
                               "--status is a status of gRPC, such as DEADLINE_EXCEEDED, or error; "
                               "not \"%.*s\"",
                               DV_FMT(filter->status));
}

/* ---- choosing ---- */

/* Whether the record makes its whole call wanted, by what only one record of the call has. */
static bool marks_call(const struct dv_record *r, const struct dv_tape_filter *filter,
                       unsigned criterion)
{
    switch (criterion) {
    case 0:
        return has_claim(r, filter->claim);
    case 1:
        return dv_str_starts_with(r->pod_uid, filter->pod);
    default:
        return (r->kind == DV_RECORD_END || r->kind == DV_RECORD_REFUSED ||
                r->kind == DV_RECORD_CONNECT_FAILED || r->kind == DV_RECORD_DISCONNECTED) &&
               is_status(r->status, filter->status);
    }
}

/* Keeps those whose call is marked. */
static void keep_marked(const struct dv_tape *tape, const struct dv_tape_filter *filter,
                        unsigned criterion, bool *wanted)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_map calls;

    dv_map_init(&calls);
    for (size_t i = 0; i < tape->records.n; i++) {
        const struct dv_tape_record *record = &tape->records.v[i];

        if (!wanted[i] || !marks_call(&record->r, filter, criterion))
            wanted[i] = wanted[i] && record->r.call != 0; /* decided below, by its call */
        else if (record->r.call != 0)
            (void)dv_map_set(&calls, key_of(record, record->r.call, arena), &calls);
    }
    for (size_t i = 0; i < tape->records.n; i++) {
        const struct dv_tape_record *record = &tape->records.v[i];
        const struct key key = {record->run, record->r.call};

        if (wanted[i] && record->r.call != 0)
            wanted[i] = dv_map_get(&calls, (dv_str){(const char *)&key, sizeof(key)}) != NULL;
    }
    dv_map_fini(&calls);
}

static bool is_call(dv_str path, dv_str wanted)
{
    return dv_str_eq(path, wanted) || dv_str_eq(dv_record_method_name(path), wanted);
}

void dv_tape_choose(const struct dv_tape *tape, const struct dv_tape_filter *filter, bool *wanted)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_tape_owners *owners = dv_tape_owners_new(tape, arena);

    for (size_t i = 0; i < tape->records.n; i++) {
        const struct dv_tape_record *record = &tape->records.v[i];
        const struct dv_record *r = &record->r;

        wanted[i] =
            r->wall_ns >= filter->since_ns &&
            (filter->until_ns == 0 || r->wall_ns < filter->until_ns) &&
            (filter->call.n == 0 || is_call(r->method, filter->call)) &&
            (filter->driver.n == 0 || dv_str_eq(dv_tape_owner(owners, record), filter->driver));
    }
    dv_tape_owners_fini(owners);
    if (filter->claim.n > 0)
        keep_marked(tape, filter, 0, wanted);
    if (filter->pod.n > 0)
        keep_marked(tape, filter, 1, wanted);
    if (filter->status.n > 0)
        keep_marked(tape, filter, 2, wanted);
}
