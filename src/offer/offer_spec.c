/* offer_spec.c - the CDI spec of a claim: the nodes of its devices, and a variable that names them.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "offer/offer.h"
#include "json/json.h"

/* The oldest version that has a path of the host beside that of the container: runtimes refuse what
 * is newer than they are. */
#define SPEC_VERSION "0.5.0"
#define SPEC_KIND DV_OFFER_DRIVER "/claim"

struct printing {
    dv_str dev_dir;
    struct dv_arena *arena;
    const struct dv_offer_given *given;
    size_t n_given;
};

/* The path of a node in the container; `nth` counts the nodes of the same offer in the claim. */
static dv_str inner_path(const struct dv_offer *offer, const struct dv_offer_node *node, size_t nth,
                         struct dv_arena *arena)
{
    if (offer->as.n == 0)
        return node->path;
    return nth == 0 ? offer->as : dv_str_printf(arena, "%.*s%zu", DV_FMT(offer->as), nth);
}

/* How many nodes of the same offer come before those of given[at]. */
static size_t nodes_before(const struct printing *printing, size_t at)
{
    size_t n = 0;

    for (size_t i = 0; i < at; i++)
        if (printing->given[i].device->offer == printing->given[at].device->offer)
            n += printing->given[i].device->n_nodes;
    return n;
}

static void set_number(struct dv_json *object, dv_str key, struct dv_cdi_number number,
                       struct dv_arena *arena)
{
    if (number.is_set)
        dv_json_set(object, key, dv_json_new_u64(number.value, arena), arena);
}

static struct dv_json *node_json(const struct printing *printing, const struct dv_offer *offer,
                                 const struct dv_offer_node *node, size_t nth)
{
    struct dv_arena *arena = printing->arena;
    struct dv_json *object = dv_json_new_object(arena);
    dv_str inner = inner_path(offer, node, nth, arena);
    dv_str host = dv_str_concat(
        (dv_str[]){printing->dev_dir, dv_str_slice(node->path, sizeof("/dev") - 1, node->path.n)},
        2, arena);

    dv_json_set(object, DV_STR("path"), dv_json_new_str(inner, arena), arena);
    if (!dv_str_eq(inner, host))
        dv_json_set(object, DV_STR("hostPath"), dv_json_new_str(host, arena), arena);
    dv_json_set(object, DV_STR("type"),
                dv_json_new_str(node->is_block ? DV_STR("b") : DV_STR("c"), arena), arena);
    dv_json_set(object, DV_STR("major"), dv_json_new_u64(node->major, arena), arena);
    dv_json_set(object, DV_STR("minor"), dv_json_new_u64(node->minor, arena), arena);
    set_number(object, DV_STR("fileMode"), offer->mode, arena);
    dv_json_set(object, DV_STR("permissions"), dv_json_new_str(offer->permissions, arena), arena);
    set_number(object, DV_STR("uid"), offer->uid, arena);
    set_number(object, DV_STR("gid"), offer->gid, arena);
    return object;
}

/* "DAVIT_SERIAL=/dev/ttyUSB0,/dev/ttyUSB1": all that the request has of the offer. Every device of
 * the request says the same, so that a container has it whichever it gets. */
static dv_str variable(const struct printing *printing, size_t at)
{
    const struct dv_offer *offer = printing->given[at].device->offer;
    struct dv_buf buf;
    dv_str text;
    size_t nth = 0;
    bool is_first = true;

    dv_buf_init(&buf, DV_CDI_SPEC_BYTES_MAX);
    dv_buf_printf(&buf, "%.*s=", DV_FMT(offer->env));
    for (size_t i = 0; i < printing->n_given; i++) {
        const struct dv_offer_given *given = &printing->given[i];
        bool is_ours = dv_str_eq(given->request, printing->given[at].request);

        if (given->device->offer != offer)
            continue;
        for (size_t k = 0; k < given->device->n_nodes; k++, nth++) {
            if (!is_ours)
                continue;
            dv_buf_printf(&buf, "%s%.*s", is_first ? "" : ",",
                          DV_FMT(inner_path(offer, given->device->nodes[k], nth, printing->arena)));
            is_first = false;
        }
    }
    text = dv_str_copy(dv_buf_str(&buf), printing->arena);
    dv_buf_fini(&buf);
    return text;
}

static struct dv_json *edits_json(const struct printing *printing, size_t at)
{
    const struct dv_offer_device *device = printing->given[at].device;
    struct dv_arena *arena = printing->arena;
    struct dv_json *edits = dv_json_new_object(arena);
    struct dv_json *nodes = dv_json_new_array(arena);
    struct dv_json *env = dv_json_new_array(arena);
    size_t nth = nodes_before(printing, at);

    for (size_t i = 0; i < device->n_nodes; i++)
        dv_json_append(nodes, node_json(printing, device->offer, device->nodes[i], nth + i));
    dv_json_append(env, dv_json_new_str(variable(printing, at), arena));
    dv_json_set(edits, DV_STR("env"), env, arena);
    dv_json_set(edits, DV_STR("deviceNodes"), nodes, arena);
    return edits;
}

/* Whether an earlier entry is the same device: a shared one may be there several times. */
static bool is_repeated(const struct dv_offer_given *given, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (given[i].device == given[at].device)
            return true;
    return false;
}

bool dv_offer_spec_print(dv_str claim_uid, struct dv_offer_given *given, size_t n_given,
                         dv_str dev_dir, struct dv_arena *arena, struct dv_buf *buf)
{
    struct printing printing = {dev_dir, arena, given, n_given};
    struct dv_json *doc = dv_json_new_object(arena);
    struct dv_json *devices = dv_json_new_array(arena);

    for (size_t i = 0; i < n_given; i++) {
        struct dv_json *device;
        dv_str name;

        if (given[i].device->cdi) {
            given[i].cdi_name = dv_str_copy(given[i].device->cdi->name, arena);
            continue;
        }
        name = dv_str_printf(arena, "%.*s-%.*s", DV_FMT(claim_uid), DV_FMT(given[i].device->name));
        given[i].cdi_name = dv_str_printf(arena, SPEC_KIND "=%.*s", DV_FMT(name));
        if (is_repeated(given, i))
            continue;
        device = dv_json_new_object(arena);
        dv_json_set(device, DV_STR("name"), dv_json_new_str(name, arena), arena);
        dv_json_set(device, DV_STR("containerEdits"), edits_json(&printing, i), arena);
        dv_json_append(devices, device);
    }
    if (dv_json_n(devices) == 0)
        return false;
    dv_json_set(doc, DV_STR("cdiVersion"), dv_json_new_str(DV_STR(SPEC_VERSION), arena), arena);
    dv_json_set(doc, DV_STR("kind"), dv_json_new_str(DV_STR(SPEC_KIND), arena), arena);
    dv_json_set(doc, DV_STR("devices"), devices, arena);
    dv_json_print(doc, NULL, buf);
    dv_buf_add_char(buf, '\n');
    return true;
}
