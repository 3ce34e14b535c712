#include "cel/plan/cel_device.h"

#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "cel/cel.h"
#include "cel/value/cel_map.h"
#include "number/number.h"

/* Devices have a handful of attributes, in one or two domains. */
#define ROOM_MAX 4u
#define DOMAINS_ROOM 1u

struct builder {
    const struct dv_cel_device_input *input;
    struct dv_arena *arena;
    struct dv_cel_device *device;
};

static struct dv_cel_val from_map(const struct dv_cel_map *map)
{
    return (struct dv_cel_val){.kind = DV_CEL_MAP, .map = map};
}

/* The room of a map that gets up to `n` entries, most often all of them or few. */
static uint32_t room_for(size_t n)
{
    return n < ROOM_MAX ? (uint32_t)n : ROOM_MAX;
}

/* The map of the name's domain, which is made when it is new, and the identifier in it. There are
 * `n` names. */
static struct dv_cel_map *inner_map(struct builder *b, struct dv_cel_map *outer, dv_str name,
                                    size_t n, struct dv_cel_map **inners, struct dv_cel_val *id)
{
    size_t slash = dv_str_find_char(name, '/');
    struct dv_cel_val domain = dv_cel_string(b->input->driver);
    struct dv_cel_val value;

    *id = dv_cel_string(name);
    if (slash < name.n) {
        domain = dv_cel_string(dv_str_slice(name, 0, slash));
        *id = dv_cel_string(dv_str_slice(name, slash + 1, name.n));
    }
    for (uint32_t i = 0; i < outer->n; i++)
        if (dv_str_eq(outer->v[i].key.s, domain.s))
            return inners[i];
    inners[outer->n] = dv_cel_map_new(room_for(n), b->arena);
    value = from_map(inners[outer->n]);
    dv_cel_map_set(outer, &domain, &value, b->arena);
    return inners[outer->n - 1];
}

static void fail(struct builder *b, dv_str name, const char *problem)
{
    if (!dv_cel_is_error(&b->device->fault))
        b->device->fault =
            dv_cel_error_printf(b->arena, "attribute %.*s: %s", DV_FMT(name), problem);
}

static bool version_value(struct builder *b, dv_str name, dv_str text, struct dv_cel_val *value)
{
    struct dv_version *version = DV_NEW(b->arena, struct dv_version);
    struct dv_err err;

    if (!dv_version_parse(text, version, &err)) {
        (void)dv_wrap(&err, "parse semantic version");
        fail(b, name, err.msg);
        return false;
    }
    *value = (struct dv_cel_val){.kind = DV_CEL_VERSION, .version = version};
    return true;
}

static bool list_value(struct builder *b, const struct dv_cel_attribute *attribute,
                       struct dv_cel_val *value)
{
    struct dv_cel_val *elements;

    *value = dv_cel_list_new(attribute->n, b->arena, &elements);
    for (size_t i = 0; i < attribute->n; i++) {
        if (attribute->kind == DV_CEL_ATTRIBUTE_INTS)
            elements[i] = dv_cel_int(attribute->ints[i]);
        else if (attribute->kind == DV_CEL_ATTRIBUTE_BOOLS)
            elements[i] = dv_cel_bool(attribute->bools[i]);
        else if (attribute->kind == DV_CEL_ATTRIBUTE_STRINGS)
            elements[i] = dv_cel_string(attribute->strings[i]);
        else if (!version_value(b, attribute->name, attribute->strings[i], &elements[i]))
            return false;
    }
    return true;
}

static bool attribute_value(struct builder *b, const struct dv_cel_attribute *attribute,
                            struct dv_cel_val *value)
{
    switch (attribute->kind) {
    case DV_CEL_ATTRIBUTE_INT:
        *value = dv_cel_int(attribute->i);
        return true;
    case DV_CEL_ATTRIBUTE_BOOL:
        *value = dv_cel_bool(attribute->b);
        return true;
    case DV_CEL_ATTRIBUTE_STRING:
        *value = dv_cel_string(attribute->s);
        return true;
    case DV_CEL_ATTRIBUTE_VERSION:
        return version_value(b, attribute->name, attribute->s, value);
    case DV_CEL_ATTRIBUTE_INTS:
    case DV_CEL_ATTRIBUTE_BOOLS:
    case DV_CEL_ATTRIBUTE_STRINGS:
    case DV_CEL_ATTRIBUTE_VERSIONS:
        if (b->input->list_type_attributes)
            return list_value(b, attribute, value);
        break;
    case DV_CEL_ATTRIBUTE_NONE:
        break;
    }
    fail(b, attribute->name, "unsupported attribute value");
    return false;
}

static struct dv_cel_val make_attributes(struct builder *b)
{
    size_t n = b->input->n_attributes;
    struct dv_cel_map *outer = dv_cel_map_new(DOMAINS_ROOM, b->arena);
    struct dv_cel_map **inners = DV_NEW_ARRAY(b->arena, struct dv_cel_map *, n + 1);

    outer->is_domains = true;
    for (size_t i = 0; i < n; i++) {
        const struct dv_cel_attribute *attribute = &b->input->attributes[i];
        struct dv_cel_val value;
        struct dv_cel_val id;

        if (!attribute_value(b, attribute, &value))
            continue;
        dv_cel_map_set(inner_map(b, outer, attribute->name, n, inners, &id), &id, &value, b->arena);
    }
    return from_map(outer);
}

static struct dv_cel_val make_capacity(struct builder *b)
{
    size_t n = b->input->n_capacities;
    struct dv_cel_map *outer = dv_cel_map_new(DOMAINS_ROOM, b->arena);
    struct dv_cel_map **inners = DV_NEW_ARRAY(b->arena, struct dv_cel_map *, n + 1);

    outer->is_domains = true;
    for (size_t i = 0; i < n; i++) {
        const struct dv_cel_capacity *capacity = &b->input->capacities[i];
        struct dv_cel_val value = {.kind = DV_CEL_QUANTITY, .quantity = &capacity->value};
        struct dv_cel_val id;

        dv_cel_map_set(inner_map(b, outer, capacity->name, n, inners, &id), &id, &value, b->arena);
    }
    return from_map(outer);
}

struct dv_cel_device *dv_cel_device_new(const struct dv_cel_device_input *input,
                                        struct dv_arena *arena)
{
    struct dv_cel_device *device = DV_NEW(arena, struct dv_cel_device);
    struct dv_cel_map *self = dv_cel_map_new(4, arena);
    struct builder b = {input, arena, device};
    struct {
        struct dv_cel_val key;
        struct dv_cel_val value;
    } fields[4];

    device->fault = dv_cel_null();
    fields[0].key = dv_cel_string(DV_STR("attributes"));
    fields[0].value = make_attributes(&b);
    fields[1].key = dv_cel_string(DV_STR("capacity"));
    fields[1].value = make_capacity(&b);
    fields[2].key = dv_cel_string(DV_STR("driver"));
    fields[2].value = dv_cel_string(input->driver);
    fields[3].key = dv_cel_string(DV_STR("allowMultipleAllocations"));
    fields[3].value = dv_cel_bool(input->allow_multiple_allocations);
    for (size_t i = 0; i < DV_COUNT(fields); i++)
        dv_cel_map_set(self, &fields[i].key, &fields[i].value, arena);
    device->self = from_map(self);
    return device;
}
