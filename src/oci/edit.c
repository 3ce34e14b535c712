#include "oci/edit.h"

#include "base/err.h"
#include "cdi/cdi.h"
#include "json/json.h"

static struct dv_json *member_of_kind(struct dv_json *parent, dv_str key, enum dv_json_kind kind,
                                      struct dv_arena *arena, struct dv_err *err)
{
    struct dv_json *member = dv_json_get(parent, key);

    if (!member || dv_json_is(member, DV_JSON_NULL)) {
        member = kind == DV_JSON_OBJECT ? dv_json_new_object(arena) : dv_json_new_array(arena);
        dv_json_set(parent, key, member, arena);
    }
    if (!dv_json_expect(member, kind, err)) {
        (void)dv_wrap(err, "OCI config"); /* tells by NULL */
        return NULL;
    }
    return member;
}

struct dv_json *dv_oci_object(struct dv_json *parent, dv_str key, struct dv_arena *arena,
                              struct dv_err *err)
{
    return member_of_kind(parent, key, DV_JSON_OBJECT, arena, err);
}

struct dv_json *dv_oci_array(struct dv_json *parent, dv_str key, struct dv_arena *arena,
                             struct dv_err *err)
{
    return member_of_kind(parent, key, DV_JSON_ARRAY, arena, err);
}

void dv_oci_put(struct dv_json *object, dv_str key, dv_str text, struct dv_arena *arena)
{
    if (text.n > 0)
        dv_json_set(object, key, dv_json_new_str(text, arena), arena);
}

bool dv_oci_member(const struct dv_json *object, dv_str key, dv_str *text, struct dv_err *err)
{
    const struct dv_json *member =
        dv_json_expect(object, DV_JSON_OBJECT, err) ? dv_json_require(object, key, err) : NULL;

    if (!member || !dv_json_as_str(member, text, err))
        return dv_wrap(err, "OCI config");
    return true;
}

bool dv_oci_blame(const struct dv_cdi_part *part, struct dv_err *err)
{
    dv_str name;

    if (!part->spec)
        return dv_wrap(err, "what device plugins want for the container");
    name = part->device ? part->device->full_name : part->spec->kind;
    return dv_wrap(err, "CDI device \"%.*s\" of %.*s", DV_FMT(name), DV_FMT(part->spec->path));
}
