/* claim_answer.c - what drivers are asked and what they answer.
 *
 * From v1 back to v1alpha3 the messages are the same in what counts here: a map from claims to
 * answers. Before 1.31 an answer to v1alpha3 was a list of CDI names where devices are now; a
 * device's bytes begin with a tag, which is a control character or a quote, and no CDI name begins
 * with one of those. v1alpha2 and v1alpha1 take one claim a call. */
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "base/visible.h"
#include "cdi/cdi.h"
#include "claim/state/claim_state.h"
#include "pb/pb.h"

static bool is_per_claim(enum dv_dra_service service)
{
    return service == DV_DRA_V1ALPHA2 || service == DV_DRA_V1ALPHA1;
}

/* -- Requests ------------------------------------------------------------------------------- */

static void add_claim_fields(const struct dv_claim_record *record, struct dv_buf *buf)
{
    dv_pb_add_bytes(buf, 1, record->namespace);
    dv_pb_add_bytes(buf, 2, record->uid);
    dv_pb_add_bytes(buf, 3, record->name);
}

/* Adds the CDI names that v1alpha1 answered with, which it wants to see again. */
static void add_cdi_ids(const struct dv_claim_record *record, dv_str driver, struct dv_buf *buf)
{
    size_t i = dv_claim_driver_index(record, driver);

    if (i == record->n_drivers)
        return;
    for (size_t k = 0; k < record->drivers[i].n_devices; k++) {
        const struct dv_claim_device *device = &record->drivers[i].devices[k];

        for (size_t m = 0; m < device->n_cdi_ids; m++)
            dv_pb_add_bytes(buf, 4, device->cdi_ids[m]);
    }
}

/* Adds the handle; services from 1.31 on have none, and their claims keep none. */
static void add_handle(const struct dv_claim_record *record, dv_str driver, struct dv_buf *buf)
{
    size_t i = dv_claim_driver_index(record, driver);

    if (i < record->n_drivers)
        dv_buf_add(buf, record->drivers[i].handle);
}

void dv_claim_request_encode(enum dv_dra_service service, bool is_prepare,
                             struct dv_claim *const *claims, size_t n_claims, dv_str driver,
                             struct dv_buf *buf)
{
    if (is_per_claim(service)) {
        add_claim_fields(&claims[0]->record, buf);
        if (service == DV_DRA_V1ALPHA1 && !is_prepare)
            add_cdi_ids(&claims[0]->record, driver, buf);
        else
            add_handle(&claims[0]->record, driver, buf);
        return;
    }
    for (size_t i = 0; i < n_claims; i++) {
        size_t mark = dv_pb_begin(buf, 1);

        add_claim_fields(&claims[i]->record, buf);
        if (service == DV_DRA_V1ALPHA3)
            add_handle(&claims[i]->record, driver, buf);
        dv_pb_end(buf, mark);
    }
}

/* -- Responses ------------------------------------------------------------------------------ */

static bool read_device(struct dv_pb_reader *reader, struct dv_arena *arena,
                        struct dv_claim_device *device, struct dv_err *err)
{
    DV_VEC(dv_str) requests = {0};
    DV_VEC(dv_str) cdi_ids = {0};
    struct dv_pb_field field;
    dv_str *to;

    while (!dv_pb_is_at_end(reader)) {
        if (!dv_pb_read(reader, &field, err))
            return false;
        switch (field.tag) {
        case DV_PB_TAG(1, DV_PB_BYTES):
            to = dv_vec_add_in(&requests, arena);
            break;
        case DV_PB_TAG(2, DV_PB_BYTES):
            to = &device->pool;
            break;
        case DV_PB_TAG(3, DV_PB_BYTES):
            to = &device->name;
            break;
        case DV_PB_TAG(4, DV_PB_BYTES):
            to = dv_vec_add_in(&cdi_ids, arena);
            break;
        case DV_PB_TAG(5, DV_PB_BYTES):
            to = &device->share_id;
            break;
        default:
            continue;
        }
        if (!dv_pb_get_string(reader, &field, to, err))
            return false;
        if (!to->p)
            *to = DV_STR(""); /* present, but empty */
    }
    device->requests = requests.v;
    device->n_requests = requests.n;
    device->cdi_ids = cdi_ids.v;
    device->n_cdi_ids = cdi_ids.n;
    return true;
}

struct reading {
    struct dv_arena *arena;
    DV_VEC(struct dv_claim_device) devices;
    DV_VEC(dv_str) cdi_ids; /* of v1alpha3 before 1.31, and older services */
    dv_str error;
};

static bool read_device_or_name(const struct dv_pb_reader *reader, const struct dv_pb_field *field,
                                bool may_be_name, struct reading *r, struct dv_err *err)
{
    struct dv_cdi_name name;
    struct dv_pb_reader inner;
    struct dv_err no_name;

    if (may_be_name && dv_cdi_name_parse(field->bytes, &name, &no_name)) {
        *dv_vec_add_in(&r->cdi_ids, r->arena) = field->bytes;
        return true;
    }
    return dv_pb_enter(reader, field, &inner, err) &&
           read_device(&inner, r->arena, dv_vec_add_in(&r->devices, r->arena), err);
}

/* Makes one device for the whole claim from CDI names, which are all that the oldest drivers
 * tell. */
static void take_names(struct reading *r)
{
    if (r->cdi_ids.n == 0)
        return;
    *dv_vec_add_in(&r->devices, r->arena) = (struct dv_claim_device){
        .pool = DV_STR(""),
        .name = DV_STR(""),
        .cdi_ids = r->cdi_ids.v,
        .n_cdi_ids = r->cdi_ids.n,
    };
}

/* Reads one answer. Protobuf allows a message to come in parts, which are merged, so the reading
 * goes on where the last part ended. */
static bool read_answer(struct dv_pb_reader *reader, enum dv_dra_service service, bool is_prepare,
                        struct reading *r, struct dv_err *err)
{
    uint32_t error_tag = DV_PB_TAG(is_prepare ? 2 : 1, DV_PB_BYTES);
    struct dv_pb_field field;

    while (!dv_pb_is_at_end(reader)) {
        if (!dv_pb_read(reader, &field, err))
            return false;
        if (field.tag == error_tag) {
            if (!dv_pb_get_string(reader, &field, &r->error, err))
                return dv_wrap(err, "error");
        } else if (is_prepare && field.tag == DV_PB_TAG(1, DV_PB_BYTES) &&
                   !read_device_or_name(reader, &field, service == DV_DRA_V1ALPHA3, r, err)) {
            return dv_wrap(err, "devices");
        }
    }
    return true;
}

static bool read_entry(struct dv_pb_reader *reader, enum dv_dra_service service, bool is_prepare,
                       struct dv_arena *arena, struct dv_claim_answer *answer, struct dv_err *err)
{
    struct reading r = {.arena = arena};
    struct dv_pb_reader inner;
    struct dv_pb_field field;

    while (!dv_pb_is_at_end(reader)) {
        if (!dv_pb_read(reader, &field, err))
            return false;
        if (field.tag == DV_PB_TAG(1, DV_PB_BYTES)) {
            if (!dv_pb_get_string(reader, &field, &answer->uid, err))
                return dv_wrap(err, "key");
        } else if (field.tag == DV_PB_TAG(2, DV_PB_BYTES)) {
            if (!dv_pb_enter(reader, &field, &inner, err) ||
                !read_answer(&inner, service, is_prepare, &r, err))
                return false;
        }
    }
    take_names(&r);
    answer->error = r.error;
    answer->devices = r.devices.v;
    answer->n_devices = r.devices.n;
    return true;
}

/* Reads a response of v1alpha2 or v1alpha1, where the whole message is the answer. */
static bool read_lone(dv_str response, bool is_prepare, struct dv_arena *arena,
                      struct dv_claim_answer *answer, struct dv_err *err)
{
    struct reading r = {.arena = arena};
    struct dv_pb_reader reader;
    struct dv_pb_field field;

    dv_pb_reader_init(&reader, response);
    while (!dv_pb_is_at_end(&reader)) {
        if (!dv_pb_read(&reader, &field, err))
            return false;
        if (is_prepare && field.tag == DV_PB_TAG(1, DV_PB_BYTES) &&
            !dv_pb_get_string(&reader, &field, dv_vec_add_in(&r.cdi_ids, arena), err))
            return dv_wrap(err, "cdi_devices");
    }
    take_names(&r);
    answer->devices = r.devices.v;
    answer->n_devices = r.devices.n;
    return true;
}

/* The place for the answer of this key. A key that comes again replaces its
 * value and keeps its place. */
static struct dv_claim_answer *answer_of(struct dv_map *places, struct dv_claim_answer *answers,
                                         size_t *n, dv_str uid)
{
    struct dv_claim_answer *answer = dv_map_get(places, uid);

    if (answer)
        return answer;
    answer = &answers[(*n)++];
    (void)dv_map_set(places, uid, answer);
    return answer;
}

static bool count_entries(dv_str response, size_t *n, struct dv_err *err)
{
    struct dv_pb_reader reader;
    struct dv_pb_field field;

    *n = 0;
    dv_pb_reader_init(&reader, response);
    while (!dv_pb_is_at_end(&reader)) {
        if (!dv_pb_read(&reader, &field, err))
            return false;
        *n += field.tag == DV_PB_TAG(1, DV_PB_BYTES);
    }
    return true;
}

static bool read_map(enum dv_dra_service service, bool is_prepare, dv_str response,
                     struct dv_arena *arena, struct dv_claim_answer *answers, struct dv_map *places,
                     size_t *n_answers, struct dv_err *err)
{
    struct dv_pb_reader reader;
    struct dv_pb_reader inner;
    struct dv_pb_field field;

    dv_pb_reader_init(&reader, response);
    while (!dv_pb_is_at_end(&reader)) {
        struct dv_claim_answer answer = {.uid = DV_STR("")};

        if (!dv_pb_read(&reader, &field, err))
            return false;
        if (field.tag != DV_PB_TAG(1, DV_PB_BYTES))
            continue;
        if (!dv_pb_enter(&reader, &field, &inner, err) ||
            !read_entry(&inner, service, is_prepare, arena, &answer, err))
            return dv_wrap(err, "claims");
        *answer_of(places, answers, n_answers, answer.uid) = answer;
    }
    return true;
}

bool dv_claim_response_decode(enum dv_dra_service service, bool is_prepare, dv_str uid,
                              dv_str response, struct dv_arena *arena,
                              struct dv_claim_answer **answers, size_t *n_answers,
                              struct dv_err *err)
{
    struct dv_claim_answer *v;
    struct dv_map places;
    size_t n = 0;
    bool ok;

    if (is_per_claim(service)) {
        v = DV_NEW(arena, struct dv_claim_answer);
        v->uid = uid;
        if (!read_lone(response, is_prepare, arena, v, err))
            return false;
        *answers = v;
        *n_answers = 1;
        return true;
    }
    if (!count_entries(response, &n, err))
        return false;
    v = DV_NEW_ARRAY(arena, struct dv_claim_answer, n);
    *n_answers = 0;
    dv_map_init(&places);
    ok = read_map(service, is_prepare, response, arena, v, &places, n_answers, err);
    dv_map_fini(&places);
    *answers = v;
    return ok;
}

/* -- Holding them against the request ------------------------------------------------------- */

static size_t text_bytes(const dv_str *texts, size_t n)
{
    size_t bytes = 0;

    for (size_t i = 0; i < n; i++)
        bytes += texts[i].n + sizeof(texts[i]);
    return bytes;
}

static bool check_size(const struct dv_claim_answer *answer, struct dv_err *err)
{
    size_t bytes = answer->n_devices * sizeof(struct dv_claim_device);

    for (size_t i = 0; i < answer->n_devices; i++) {
        const struct dv_claim_device *device = &answer->devices[i];

        bytes += device->pool.n + device->name.n + device->share_id.n;
        bytes += text_bytes(device->requests, device->n_requests);
        bytes += text_bytes(device->cdi_ids, device->n_cdi_ids);
    }
    if (bytes > DV_CLAIM_ANSWER_BYTES_MAX)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED, "%zu devices take %zu bytes, %u are allowed",
                       answer->n_devices, bytes, DV_CLAIM_ANSWER_BYTES_MAX);
    return true;
}

static bool check_names(const struct dv_claim_answer *answer, struct dv_err *err)
{
    struct dv_cdi_name name;

    for (size_t i = 0; i < answer->n_devices; i++) {
        const struct dv_claim_device *device = &answer->devices[i];

        if (!dv_str_is_visible(device->pool) || !dv_str_is_visible(device->name) ||
            !dv_str_is_visible(device->share_id))
            return dv_fail(err, DV_INVALID_ARGUMENT, "device %.*s/%.*s: a character cannot be seen",
                           DV_FMT(device->pool), DV_FMT(device->name));
        for (size_t k = 0; k < device->n_cdi_ids; k++)
            if (!dv_cdi_name_parse(device->cdi_ids[k], &name, err))
                return dv_wrap(err, "device %.*s/%.*s", DV_FMT(device->pool), DV_FMT(device->name));
    }
    return true;
}

static bool keep(struct dv_claim_state *state, struct dv_claim *claim, dv_str driver,
                 const struct dv_claim_answer *answer, struct dv_err *err)
{
    struct dv_claim_entry *entry = dv_claim_entry_of(claim);
    size_t i = dv_claim_driver_index(&claim->record, driver);

    if (i == claim->record.n_drivers)
        return dv_fail(err, DV_INTERNAL,
                       "internal error: unable to get claim info for ResourceClaim %.*s in "
                       "namespace %.*s",
                       DV_FMT(claim->record.name), DV_FMT(claim->record.namespace));
    if (!check_size(answer, err) || (!state->is_strict && !check_names(answer, err)))
        return dv_wrap(err, "NodePrepareResources failed for ResourceClaim %.*s: driver %.*s",
                       DV_FMT(claim->record.name), DV_FMT(driver));
    dv_claim_set_devices(state, entry, i, answer->n_devices > 0 ? answer->devices : NULL,
                         answer->n_devices);
    return true;
}

bool dv_claim_apply(struct dv_claim_state *state, bool is_prepare, dv_str driver,
                    struct dv_claim *const *claims, size_t n_claims,
                    const struct dv_claim_answer *answers, size_t n_answers, struct dv_err *err)
{
    const char *method = is_prepare ? "NodePrepareResources" : "NodeUnprepareResources";
    DV_CLEANUP(dv_map_fini) struct dv_map by_uid = {0};

    dv_map_init(&by_uid);
    for (size_t i = 0; i < n_claims; i++)
        (void)dv_map_set(&by_uid, claims[i]->record.uid, claims[i]);
    for (size_t i = 0; i < n_answers; i++) {
        struct dv_claim *claim = dv_map_get(&by_uid, answers[i].uid);

        if (!claim)
            return dv_fail(err, DV_INTERNAL, "%s returned result for unknown claim UID %.*s",
                           method, DV_FMT(answers[i].uid));
        if (answers[i].error.n > 0)
            return dv_fail(err, DV_UNKNOWN, "%s failed for ResourceClaim %.*s: %.*s", method,
                           DV_FMT(claim->record.name), DV_FMT(answers[i].error));
        if (is_prepare && !keep(state, claim, driver, &answers[i], err))
            return false;
    }
    if (n_answers < n_claims)
        return dv_fail(err, DV_INTERNAL, "%s skipped %zu ResourceClaims", method,
                       n_claims - n_answers);
    return true;
}
