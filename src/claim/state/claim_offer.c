/* claim_offer.c - what drivers of 1.30 offered through NodeListAndWatchResources, as devices of
 * today.
 *
 *     1 resources                  a model, one of the kinds that there were to be
 *         1 namedResources         the only kind that there ever was
 *             1 instances          { 1 name, 2 attributes { 1 name, 2 attributeValue } }
 *
 * An instance becomes a device of the same name, since that name goes back to the driver in the
 * handle of a claim. Quantities become capacity, other values attributes. Names of attributes were
 * DNS subdomains and are C identifiers now: dots and dashes become underscores, and an underscore
 * is put before a digit that one begins with. What today's API cannot hold is left out, and named:
 * lists, which only servers with an alpha feature would keep, are, too. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/ascii.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/name.h"
#include "base/str.h"
#include "base/vec.h"
#include "base/visible.h"
#include "claim/claim.h"
#include "number/number.h"
#include "pb/pb.h"
#include "resource/resource.h"

/* The API's limits for a device. */
#define PROPERTIES_MAX 32u
#define ID_BYTES_MAX 32u
#define TEXT_BYTES_MAX 64u
/* The longest name that a message for people shows; the API of 1.30 had none that is longer. */
#define SHOWN_BYTES_MAX 253u

struct reading {
    struct dv_arena *arena;
    DV_VEC(struct dv_api_device) devices;
    DV_VEC(dv_str) left_out;
    size_t n_left_out;
    struct dv_map names; /* of the devices */
};

/* A value of an attribute as it comes; exactly one kind of it should be there. */
struct value {
    dv_str quantity;
    struct dv_api_device_attribute attribute;
    unsigned n_kinds;
    bool is_list;
};

/* A device as it grows. */
struct properties {
    DV_VEC(struct dv_api_device_attribute_entry) attributes;
    DV_VEC(struct dv_api_device_capacity_entry) capacity;
};

typedef bool read_fn(struct dv_pb_reader *reader, struct reading *reading, struct dv_err *err);

static dv_str shown(dv_str name, struct dv_arena *arena)
{
    return dv_str_visible(dv_str_slice(name, 0, SHOWN_BYTES_MAX), arena);
}

/* Notes that an attribute of the device, or all of it (no attribute), cannot be had. */
static void leave_out(struct reading *reading, dv_str device, dv_str attribute, const char *why)
{
    dv_str name = shown(device, reading->arena);

    reading->n_left_out++;
    if (reading->left_out.n >= DV_CLAIM_OFFER_LEFT_OUT_MAX)
        return;
    *dv_vec_add_in(&reading->left_out, reading->arena) =
        attribute.p ? dv_str_printf(reading->arena, "device \"%.*s\": attribute \"%.*s\": %s",
                                    DV_FMT(name), DV_FMT(shown(attribute, reading->arena)), why)
                    : dv_str_printf(reading->arena, "device \"%.*s\": %s", DV_FMT(name), why);
}

/* ---- attributes ---- */

static bool read_quantity(struct dv_pb_reader *reader, dv_str *text, struct dv_err *err)
{
    struct dv_pb_field field;

    while (!dv_pb_is_at_end(reader)) {
        if (!dv_pb_read(reader, &field, err))
            return false;
        if (field.tag == DV_PB_TAG(1, DV_PB_BYTES) && !dv_pb_get_string(reader, &field, text, err))
            return false;
    }
    return true;
}

static bool read_kind(const struct dv_pb_reader *reader, const struct dv_pb_field *field,
                      struct dv_arena *arena, struct value *value, struct dv_err *err)
{
    struct dv_pb_reader inner;
    int64_t *number;
    bool *flag;

    switch (field->tag) {
    case DV_PB_TAG(2, DV_PB_VARINT):
        flag = DV_NEW(arena, bool);
        *flag = field->value != 0;
        value->attribute.bool_ = flag;
        break;
    case DV_PB_TAG(5, DV_PB_BYTES):
        if (!dv_pb_get_string(reader, field, &value->attribute.string, err))
            return false;
        break;
    case DV_PB_TAG(6, DV_PB_BYTES):
        value->quantity = DV_STR(""); /* one without a text is no quantity, but meant as one */
        if (!dv_pb_enter(reader, field, &inner, err) ||
            !read_quantity(&inner, &value->quantity, err))
            return false;
        break;
    case DV_PB_TAG(7, DV_PB_VARINT):
        number = DV_NEW(arena, int64_t);
        *number = (int64_t)field->value;
        value->attribute.int_ = number;
        break;
    case DV_PB_TAG(8, DV_PB_BYTES):
    case DV_PB_TAG(9, DV_PB_BYTES):
        value->is_list = true;
        break;
    case DV_PB_TAG(10, DV_PB_BYTES):
        if (!dv_pb_get_string(reader, field, &value->attribute.version, err))
            return false;
        break;
    default:
        return true; /* a kind that 1.30 did not have */
    }
    value->n_kinds++;
    return true;
}

static bool read_value(struct dv_pb_reader *reader, struct dv_arena *arena, struct value *value,
                       struct dv_err *err)
{
    struct dv_pb_field field;

    *value = (struct value){.quantity = DV_STR_NONE};
    while (!dv_pb_is_at_end(reader))
        if (!dv_pb_read(reader, &field, err) || !read_kind(reader, &field, arena, value, err))
            return false;
    return true;
}

/* The name as today's API has it; empty: it cannot be. */
static dv_str make_id(dv_str name, struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str id = DV_STR_NONE;

    if (!dv_has_name_form(name) && !dv_has_subdomain_form(name, true))
        return id;
    dv_buf_init(&buf, ID_BYTES_MAX);
    if (dv_is_digit(name.p[0]))
        dv_buf_add_char(&buf, '_');
    for (size_t i = 0; i < name.n; i++)
        dv_buf_add_char(&buf, name.p[i] == '-' || name.p[i] == '.' ? '_' : name.p[i]);
    if (!buf.is_over)
        id = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return id;
}

static bool is_text(dv_str text)
{
    return text.n <= TEXT_BYTES_MAX && dv_str_find_char(text, '\0') == text.n;
}

/* What is wrong with the value; NULL: nothing. */
static const char *check_value(const struct value *value, struct dv_arena *arena,
                               struct dv_quantity *quantity)
{
    struct dv_err err;

    if (value->n_kinds != 1)
        return value->n_kinds == 0 ? "it has no value of a known type" : "it has several values";
    if (value->is_list)
        return "it is a list";
    if (value->quantity.p && !dv_quantity_parse(value->quantity, arena, quantity, &err))
        return "its value is not a quantity";
    if (!is_text(value->attribute.string) || !is_text(value->attribute.version))
        return "its value has more than 64 bytes, or a zero byte";
    if (value->attribute.version.p && !dv_version_is_well_formed(value->attribute.version))
        return "its value is not a semantic version";
    return NULL;
}

static bool has_key(const struct properties *properties, dv_str key, bool is_capacity)
{
    for (size_t i = 0; !is_capacity && i < properties->attributes.n; i++)
        if (dv_str_eq(properties->attributes.v[i].key, key))
            return true;
    for (size_t i = 0; is_capacity && i < properties->capacity.n; i++)
        if (dv_str_eq(properties->capacity.v[i].key, key))
            return true;
    return false;
}

/* Adds the attribute, or tells why not. */
static const char *add_property(dv_str name, const struct value *value, struct dv_arena *arena,
                                struct properties *properties)
{
    dv_str id = make_id(name, arena);
    struct dv_quantity quantity = {0};
    const char *wrong = check_value(value, arena, &quantity);
    bool is_capacity = value->quantity.p != NULL;

    if (wrong)
        return wrong;
    if (id.n == 0)
        return "its name is not a C identifier of at most 32 characters, dots and dashes aside";
    if (has_key(properties, id, is_capacity))
        return "another one has that name";
    if (properties->attributes.n + properties->capacity.n >= PROPERTIES_MAX)
        return "the device has 32 already";
    if (is_capacity)
        *dv_vec_add_in(&properties->capacity, arena) =
            (struct dv_api_device_capacity_entry){.key = id, .value.value = quantity};
    else
        *dv_vec_add_in(&properties->attributes, arena) =
            (struct dv_api_device_attribute_entry){.key = id, .value = value->attribute};
    return NULL;
}

static bool read_attribute(struct dv_pb_reader *reader, struct reading *reading, dv_str device,
                           struct properties *properties, struct dv_err *err)
{
    dv_str name = DV_STR("");
    struct value value = {.quantity = DV_STR_NONE};
    struct dv_pb_reader inner;
    struct dv_pb_field field;
    const char *wrong;

    while (!dv_pb_is_at_end(reader)) {
        if (!dv_pb_read(reader, &field, err))
            return false;
        if (field.tag == DV_PB_TAG(1, DV_PB_BYTES) && !dv_pb_get_string(reader, &field, &name, err))
            return dv_wrap(err, "name");
        if (field.tag == DV_PB_TAG(2, DV_PB_BYTES) &&
            (!dv_pb_enter(reader, &field, &inner, err) ||
             !read_value(&inner, reading->arena, &value, err)))
            return dv_wrap(err, "attributeValue");
    }
    wrong = add_property(name, &value, reading->arena, properties);
    if (wrong)
        leave_out(reading, device, name, wrong);
    return true;
}

/* ---- devices ---- */

static bool read_name(struct dv_pb_reader reader, dv_str *name, struct dv_err *err)
{
    struct dv_pb_field field;

    while (!dv_pb_is_at_end(&reader)) {
        if (!dv_pb_read(&reader, &field, err))
            return false;
        if (field.tag == DV_PB_TAG(1, DV_PB_BYTES) && !dv_pb_get_string(&reader, &field, name, err))
            return dv_wrap(err, "name");
    }
    return true;
}

static bool read_attributes(struct dv_pb_reader *reader, struct reading *reading,
                            struct dv_api_device *device, struct dv_err *err)
{
    struct properties properties = {0};
    struct dv_pb_reader inner;
    struct dv_pb_field field;

    while (!dv_pb_is_at_end(reader)) {
        if (!dv_pb_read(reader, &field, err))
            return false;
        if (field.tag == DV_PB_TAG(2, DV_PB_BYTES) &&
            (!dv_pb_enter(reader, &field, &inner, err) ||
             !read_attribute(&inner, reading, device->name, &properties, err)))
            return dv_wrap(err, "attributes");
    }
    device->attributes = properties.attributes.v;
    device->n_attributes = properties.attributes.n;
    device->capacity = properties.capacity.v;
    device->n_capacity = properties.capacity.n;
    if (device->n_attributes > 1)
        qsort(device->attributes, device->n_attributes, sizeof(device->attributes[0]),
              dv_str_compare);
    if (device->n_capacity > 1)
        qsort(device->capacity, device->n_capacity, sizeof(device->capacity[0]), dv_str_compare);
    return true;
}

static bool read_instance(struct dv_pb_reader *reader, struct reading *reading, struct dv_err *err)
{
    dv_str name = DV_STR("");
    struct dv_api_device *device;

    if (!read_name(*reader, &name, err))
        return false;
    if (!dv_is_dns_label(name)) {
        leave_out(reading, name, DV_STR_NONE,
                  "its name is not a DNS label of at most 63 characters");
        return true;
    }
    if (dv_map_get(&reading->names, name)) {
        leave_out(reading, name, DV_STR_NONE, "another one has that name");
        return true;
    }
    if (reading->devices.n >= DV_CLAIM_OFFER_DEVICES_MAX)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED, "more than %u devices",
                       DV_CLAIM_OFFER_DEVICES_MAX);
    device = dv_vec_add_in(&reading->devices, reading->arena);
    *device = (struct dv_api_device){.name = name};
    (void)dv_map_set(&reading->names, device->name, reading);
    return read_attributes(reader, reading, device, err);
}

/* Reads each message in field 1, which is called `name`. */
static bool read_each(struct dv_pb_reader *reader, const char *name, read_fn *read,
                      struct reading *reading, struct dv_err *err)
{
    struct dv_pb_reader inner;
    struct dv_pb_field field;

    for (size_t i = 0; !dv_pb_is_at_end(reader); i++) {
        if (!dv_pb_read(reader, &field, err))
            return false;
        if (field.tag == DV_PB_TAG(1, DV_PB_BYTES) &&
            (!dv_pb_enter(reader, &field, &inner, err) || !read(&inner, reading, err)))
            return dv_wrap(err, "%s[%zu]", name, i);
    }
    return true;
}

static bool read_named_resources(struct dv_pb_reader *reader, struct reading *reading,
                                 struct dv_err *err)
{
    return read_each(reader, "instances", read_instance, reading, err);
}

static bool read_model(struct dv_pb_reader *reader, struct reading *reading, struct dv_err *err)
{
    return read_each(reader, "namedResources", read_named_resources, reading, err);
}

bool dv_claim_offer_decode(dv_str message, struct dv_arena *arena, struct dv_claim_offer *offer,
                           struct dv_err *err)
{
    struct reading reading = {.arena = arena};
    struct dv_pb_reader reader;
    bool is_good;

    if (message.n > DV_CLAIM_OFFER_BYTES_MAX)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED, "%zu bytes are more than %u", message.n,
                       DV_CLAIM_OFFER_BYTES_MAX);
    dv_map_init(&reading.names);
    dv_pb_reader_init(&reader, message);
    is_good = read_each(&reader, "resources", read_model, &reading, err);
    dv_map_fini(&reading.names);
    if (!is_good)
        return false;
    *offer = (struct dv_claim_offer){
        .devices = reading.devices.v,
        .n_devices = reading.devices.n,
        .left_out = reading.left_out.v,
        .n_named = reading.left_out.n,
        .n_left_out = reading.n_left_out,
    };
    return true;
}
