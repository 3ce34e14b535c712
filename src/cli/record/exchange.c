#include "cli/record/exchange.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "cli/record/tape.h"
#include "pb/pb.h"
#include "record/message.h"
#include "record/record.h"

/* A shorter text is replaced only where it stands alone: "0" is in too many others. */
#define INNER_BYTES_MIN 8u
#define TEXT_BYTES_MAX (16u * 1024u * 1024u)

/* ---- gathering ---- */

struct call_key {
    uint64_t run;
    uint64_t call;
};

static void add_record(struct dv_exchange *exchange, const struct dv_tape_record *record)
{
    const struct dv_record *r = &record->r;

    if (r->message.p && dv_record_is_request(r))
        exchange->request = record;
    else if (r->kind == DV_RECORD_MESSAGE)
        *dv_vec_add(&exchange->answers) =
            (struct dv_exchange_answer){record, r->clock_ns > exchange->start->r.clock_ns
                                                    ? r->clock_ns - exchange->start->r.clock_ns
                                                    : 0};
    else if (r->kind == DV_RECORD_END)
        exchange->end = record;
}

static struct dv_exchange *begin(struct dv_exchanges *exchanges,
                                 const struct dv_tape_record *record, dv_str driver)
{
    struct dv_exchange *exchange = DV_NEW_ARRAY(exchanges->arena, struct dv_exchange, 1);

    exchange->start = record;
    exchange->driver = driver;
    *dv_vec_add(&exchanges->v) = exchange;
    return exchange;
}

void dv_exchanges_gather(struct dv_exchanges *exchanges, const struct dv_tape *tape, dv_str driver,
                         struct dv_arena *arena)
{
    struct dv_tape_owners *owners = dv_tape_owners_new(tape, arena);
    struct call_key *keys = DV_NEW_ARRAY(arena, struct call_key, tape->records.n);
    struct dv_map calls;

    *exchanges = (struct dv_exchanges){.arena = arena};
    dv_map_init(&calls);
    for (size_t i = 0; i < tape->records.n; i++) {
        const struct dv_tape_record *record = &tape->records.v[i];
        dv_str key = {(const char *)&keys[i], sizeof(keys[i])};
        struct dv_exchange *exchange;

        keys[i] = (struct call_key){record->run, record->r.call};
        if (record->r.call == 0)
            continue;
        exchange = dv_map_get(&calls, key);
        if (exchange && record->r.is_repeated)
            continue;    /* the file that had it first is there */
        if (!exchange) { /* its beginning may have been in a file that is gone */
            dv_str owner = dv_tape_owner(owners, record);

            if (driver.n > 0 && !dv_str_eq(owner, driver))
                continue;
            exchange = begin(exchanges, record, owner);
            (void)dv_map_set(&calls, key, exchange);
        }
        add_record(exchange, record);
    }
    dv_map_fini(&calls);
    dv_tape_owners_fini(owners);
}

void dv_exchanges_fini(struct dv_exchanges *exchanges)
{
    for (size_t i = 0; i < exchanges->v.n; i++)
        dv_vec_fini(&exchanges->v.v[i]->answers);
    dv_vec_fini(&exchanges->v);
}

bool dv_exchanges_driver(const struct dv_exchanges *exchanges, dv_str *driver, struct dv_err *err)
{
    dv_str found = DV_STR_NONE;

    for (size_t i = 0; i < exchanges->v.n; i++) {
        dv_str name = exchanges->v.v[i]->driver;

        if (name.n == 0 || name.p[0] == '/') /* a socket that told no name */
            continue;
        if (found.n > 0 && !dv_str_eq(found, name))
            return dv_fail(
                err, DV_FAILED_PRECONDITION,
                "the recording has several drivers, %.*s and %.*s among them: choose one "
                "with --driver",
                DV_FMT(found), DV_FMT(name));
        found = name;
    }
    if (found.n == 0)
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "the recording has no calls to such a driver; davit record show lists what "
                       "it has");
    *driver = found;
    return true;
}

/* ---- likeness ---- */

/* The texts of a message, in their order. */
struct texts {
    DV_VEC(struct dv_pb_text) v;
};

static bool collect(void *ctx, const struct dv_pb_text *text, dv_str *replacement)
{
    struct texts *texts = ctx;

    (void)replacement;
    *dv_vec_add(&texts->v) = *text;
    return false;
}

static bool collect_all(const struct dv_record *record, struct texts *texts, struct dv_arena *arena)
{
    struct ProtobufCMessage *message;
    struct dv_err err;

    message = dv_record_decode(record, arena, &err);
    if (message)
        dv_pb_edit(message, collect, texts, arena);
    return message != NULL;
}

static bool is_same_field(const struct dv_pb_text *a, const struct dv_pb_text *b)
{
    return strcmp(a->message, b->message) == 0 && !a->field == !b->field &&
           (!a->field || strcmp(a->field, b->field) == 0);
}

/* How many texts are equal; -1: the messages have not the same fields. */
static long likeness(const struct texts *a, const struct texts *b)
{
    long n = 0;

    if (a->v.n != b->v.n)
        return -1;
    for (size_t i = 0; i < a->v.n; i++) {
        if (!is_same_field(&a->v.v[i], &b->v.v[i]))
            return -1;
        n += dv_str_eq(a->v.v[i].value, b->v.v[i].value);
    }
    return n;
}

static void pair_up(const struct texts *recorded, const struct texts *now,
                    struct dv_exchange_pairs *pairs)
{
    for (size_t i = 0; i < recorded->v.n; i++)
        if (recorded->v.v[i].value.n > 0 && !dv_str_eq(recorded->v.v[i].value, now->v.v[i].value))
            *dv_vec_add(&pairs->v) =
                (struct dv_exchange_pair){recorded->v.v[i].value, now->v.v[i].value};
}

/* What is known of the best candidate so far. */
struct best {
    struct dv_exchange *exchange;
    struct texts texts;
    long likeness;
};

static bool is_better(const struct best *best, long found)
{
    if (!best->exchange || found > best->likeness)
        return true;
    /* One that was not used comes before one that was; of those that were used the last counts. */
    return found == best->likeness && best->exchange->n_used > 0;
}

struct dv_exchange *dv_exchange_choose(const struct dv_exchanges *exchanges, dv_str method,
                                       dv_str request, struct dv_exchange_pairs *pairs)
{
    const struct dv_record asked = {.method = method, .message = request, .is_sent = true};
    struct best best = {.likeness = -1};
    struct texts now = {0};

    if (!collect_all(&asked, &now, exchanges->arena))
        return NULL;
    for (size_t i = 0; i < exchanges->v.n; i++) {
        struct dv_exchange *exchange = exchanges->v.v[i];
        struct texts texts = {0};
        long found = -1;

        if (!dv_str_eq(exchange->start->r.method, method))
            continue;
        if (!exchange->request && exchange->answers.n > 0)
            found =
                0; /* repeated from a file that is gone: requests of such calls have no fields */
        else if (exchange->request && collect_all(&exchange->request->r, &texts, exchanges->arena))
            found = likeness(&texts, &now);
        if (found >= 0 && is_better(&best, found)) {
            dv_vec_fini(&best.texts.v);
            best = (struct best){exchange, texts, found};
        } else {
            dv_vec_fini(&texts.v);
        }
    }
    if (best.exchange && best.exchange->request)
        pair_up(&best.texts, &now, pairs);
    dv_vec_fini(&best.texts.v);
    dv_vec_fini(&now.v);
    return best.exchange;
}

/* ---- translating ---- */

struct translation {
    const struct dv_exchange_pairs *pairs;
    struct dv_arena *arena;
};

static dv_str replace_all(dv_str text, const struct dv_exchange_pair *pair, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    size_t at;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    while ((at = dv_str_find(text, pair->recorded)) < text.n) {
        dv_buf_add(&buf, dv_str_slice(text, 0, at));
        dv_buf_add(&buf, pair->now);
        text = dv_str_slice(text, at + pair->recorded.n, text.n);
    }
    dv_buf_add(&buf, text);
    return dv_str_copy(dv_buf_str(&buf), arena);
}

static bool translate(void *ctx, const struct dv_pb_text *text, dv_str *replacement)
{
    const struct translation *translation = ctx;
    dv_str value = text->value;

    for (size_t i = 0; i < translation->pairs->v.n; i++) {
        const struct dv_exchange_pair *pair = &translation->pairs->v.v[i];

        if (dv_str_eq(text->value, pair->recorded)) {
            *replacement = pair->now;
            return true;
        }
        if (pair->recorded.n >= INNER_BYTES_MIN && dv_str_find(value, pair->recorded) < value.n)
            value = replace_all(value, pair, translation->arena);
    }
    if (value.p == text->value.p)
        return false;
    *replacement = value;
    return true;
}

bool dv_exchange_translate(const struct dv_tape_record *record,
                           const struct dv_exchange_pairs *pairs, struct dv_arena *arena,
                           dv_str *bytes, struct dv_err *err)
{
    struct translation translation = {pairs, arena};
    struct ProtobufCMessage *message;
    char *encoded;
    size_t n;

    message = dv_record_decode(&record->r, arena, err);
    if (!message)
        return false;
    dv_pb_edit(message, translate, &translation, arena);
    n = dv_pb_size(message);
    encoded = dv_arena_alloc(arena, n, 1);
    dv_pb_encode(message, encoded, n);
    *bytes = (dv_str){encoded, n};
    return true;
}
