/* ledger.c - identities to those who hold them.
 *
 *     identity --> entry: sources (a resource or a driver): marks --> holding --> pod
 *
 * All holdings of an identity through one source stand together: whether one of them speaks against
 * a newcomer is told by the first one of another pod, so shares of a device cost nothing. */
#include "pod/ledger/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/vec.h"
#include "pod/ledger/lessons.h"

/* A message names this many devices of a holder. */
#define TOLD_DEVICES_MAX 4u
#define TOLD_BYTES_MAX 4096u

struct entry {
    enum dv_identity_kind kind;
    dv_str key;
    struct dv_list sources;
    char text[];
};

struct source {
    struct dv_link link; /* of the entry */
    struct entry *entry;
    struct dv_list marks;
    enum dv_ledger_way way;
    dv_str giver;
    char text[];
};

/* The link between a holding and one of its identities. */
struct mark {
    struct dv_link link; /* of the source */
    struct source *source;
    struct holding *holding;
};

struct pod {
    struct {
        struct holding **v;
        size_t n;
        size_t size;
    } holdings;
    dv_str uid;
    char text[];
};

struct holding {
    struct dv_arena *arena;
    struct pod *pod;
    struct dv_ledger_holder holder;
    struct dv_identity *identities;
    struct mark *marks; /* for each of them */
    size_t n;
    bool has_taught;
};

struct dv_ledger {
    struct dv_map entries[DV_N_IDENTITY_KINDS]; /* by text */
    struct dv_map pods;                         /* by uid */
    struct dv_lessons lessons;
};

/* ---- entries ---- */

static dv_str put_text(char *text, dv_str s)
{
    if (s.n > 0)
        memcpy(text, s.p, s.n);
    return (dv_str){text, s.n};
}

static struct entry *find_entry(const struct dv_ledger *ledger, const struct dv_identity *identity)
{
    return dv_map_get(&ledger->entries[identity->kind], identity->text);
}

static struct entry *make_entry(struct dv_ledger *ledger, const struct dv_identity *identity)
{
    struct entry *entry = find_entry(ledger, identity);

    if (entry)
        return entry;
    entry = dv_alloc(sizeof(*entry) + identity->text.n);
    entry->kind = identity->kind;
    entry->key = put_text(entry->text, identity->text);
    dv_list_init(&entry->sources);
    (void)dv_map_set(&ledger->entries[identity->kind], entry->key, entry);
    return entry;
}

static bool is_from(const struct source *source, const struct dv_ledger_holder *holder)
{
    return source->way == holder->way && dv_str_eq(source->giver, holder->giver);
}

static struct source *make_source(struct entry *entry, const struct dv_ledger_holder *holder)
{
    struct source *source;
    struct dv_link *link;

    DV_LIST_EACH (&entry->sources, link) {
        source = DV_CONTAINER(link, struct source, link);
        if (is_from(source, holder))
            return source;
    }
    source = dv_alloc(sizeof(*source) + holder->giver.n);
    source->entry = entry;
    source->way = holder->way;
    source->giver = put_text(source->text, holder->giver);
    dv_list_init(&source->marks);
    dv_list_push(&entry->sources, &source->link);
    return source;
}

static const struct holding *holding_of(struct dv_link *link)
{
    return DV_CONTAINER(link, struct mark, link)->holding;
}

/* ---- holding ---- */

static void add_mark(struct dv_ledger *ledger, struct holding *holding, size_t i)
{
    struct entry *entry = make_entry(ledger, &holding->identities[i]);
    struct mark *mark = &holding->marks[i];

    mark->holding = holding;
    mark->source = make_source(entry, &holding->holder);
    dv_list_push(&mark->source->marks, &mark->link);
}

static void drop_mark(struct dv_ledger *ledger, struct mark *mark)
{
    struct source *source = mark->source;
    struct entry *entry = source->entry;

    dv_link_remove(&mark->link);
    if (!dv_list_is_empty(&source->marks))
        return;
    dv_link_remove(&source->link);
    free(source);
    if (!dv_list_is_empty(&entry->sources))
        return;
    (void)dv_map_remove(&ledger->entries[entry->kind], entry->key);
    free(entry);
}

/* Frees the holding, and its pod when that was the last one. */
static void drop_holding(struct dv_ledger *ledger, struct holding *holding)
{
    struct pod *pod = holding->pod;
    size_t at = 0;

    for (size_t i = 0; i < holding->n; i++)
        drop_mark(ledger, &holding->marks[i]);
    while (pod->holdings.v[at] != holding)
        at++;
    dv_vec_remove(&pod->holdings, at);
    dv_arena_free(holding->arena);
    if (pod->holdings.n > 0)
        return;
    (void)dv_map_remove(&ledger->pods, pod->uid);
    dv_vec_fini(&pod->holdings);
    free(pod);
}

static struct pod *make_pod(struct dv_ledger *ledger, dv_str uid)
{
    struct pod *pod = dv_map_get(&ledger->pods, uid);

    if (pod)
        return pod;
    pod = dv_alloc(sizeof(*pod) + uid.n);
    pod->uid = put_text(pod->text, uid);
    (void)dv_map_set(&ledger->pods, pod->uid, pod);
    return pod;
}

static void copy_holder(struct holding *holding, const struct dv_ledger_holder *holder)
{
    struct dv_arena *arena = holding->arena;
    dv_str *devices = DV_NEW_ARRAY(arena, dv_str, holder->n_devices);

    for (size_t i = 0; i < holder->n_devices; i++)
        devices[i] = dv_str_copy(holder->devices[i], arena);
    holding->holder = (struct dv_ledger_holder){
        .pod_uid = dv_str_copy(holder->pod_uid, arena),
        .namespace = dv_str_copy(holder->namespace, arena),
        .name = dv_str_copy(holder->name, arena),
        .container = dv_str_copy(holder->container, arena),
        .way = holder->way,
        .giver = dv_str_copy(holder->giver, arena),
        .claim = dv_str_copy(holder->claim, arena),
        .devices = devices,
        .n_devices = holder->n_devices,
    };
}

static bool is_same_holder(const struct dv_ledger_holder *a, const struct dv_ledger_holder *b)
{
    if (a->way != b->way || !dv_str_eq(a->giver, b->giver) || !dv_str_eq(a->claim, b->claim) ||
        !dv_str_eq(a->container, b->container) || a->n_devices != b->n_devices)
        return false;
    for (size_t i = 0; i < a->n_devices; i++) {
        if (!dv_str_eq(a->devices[i], b->devices[i]))
            return false;
    }
    return true;
}

static void drop_former(struct dv_ledger *ledger, const struct dv_ledger_holder *holder)
{
    const struct pod *pod = dv_map_get(&ledger->pods, holder->pod_uid);

    for (size_t i = 0; pod && i < pod->holdings.n; i++) {
        if (is_same_holder(&pod->holdings.v[i]->holder, holder)) {
            drop_holding(ledger, pod->holdings.v[i]);
            return;
        }
    }
}

void dv_ledger_hold(struct dv_ledger *ledger, const struct dv_ledger_holder *holder,
                    const struct dv_identity *identities, size_t n_identities)
{
    struct dv_arena *arena = dv_arena_new();
    struct holding *holding = DV_NEW(arena, struct holding);

    holding->arena = arena;
    copy_holder(holding, holder);
    holding->n = n_identities;
    holding->identities = DV_NEW_ARRAY(arena, struct dv_identity, n_identities);
    holding->marks = DV_NEW_ARRAY(arena, struct mark, n_identities);
    for (size_t i = 0; i < n_identities; i++)
        holding->identities[i] =
            (struct dv_identity){identities[i].kind, dv_str_copy(identities[i].text, arena)};
    /* The former holding goes last: the texts that are given may be its own. */
    drop_former(ledger, &holding->holder);
    holding->pod = make_pod(ledger, holding->holder.pod_uid);
    *dv_vec_add(&holding->pod->holdings) = holding;
    for (size_t i = 0; i < n_identities; i++)
        add_mark(ledger, holding, i);
}

bool dv_ledger_learn(struct dv_ledger *ledger, dv_str pod_uid, size_t n_max)
{
    const struct pod *pod = dv_map_get(&ledger->pods, pod_uid);
    size_t n_seen = 0;

    for (size_t i = 0; pod && i < pod->holdings.n; i++) {
        struct holding *holding = pod->holdings.v[i];

        if (holding->has_taught)
            continue;
        if (n_seen >= n_max)
            return false;
        for (size_t k = 0; k < holding->n; k++)
            dv_lessons_learn(&ledger->lessons, &holding->holder, &holding->identities[k]);
        holding->has_taught = true;
        n_seen += holding->n;
    }
    return true;
}

/* ---- asking ---- */

static bool is_node(const struct dv_identity *identity)
{
    return identity->kind == DV_IDENTITY_NODE || identity->kind == DV_IDENTITY_PATH;
}

static dv_str vendor_of(const struct dv_ledger_holder *holder)
{
    return dv_str_slice(holder->giver, 0, dv_str_find_char(holder->giver, '/'));
}

/* A newcomer, with what it is about to get. */
struct asker {
    const struct dv_ledger *ledger;
    const struct dv_ledger_holder *holder;
    const struct dv_identity *identities;
    size_t n;
    bool has_pci;
    const struct holding *met; /* the holding that it was last compared with; NULL: none yet */
    bool is_met_elsewhere;
};

static bool has_pci(const struct dv_identity *identities, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (identities[i].kind == DV_IDENTITY_PCI)
            return true;
    return false;
}

static bool is_among(const struct source *source, const struct holding *holding)
{
    struct dv_link *link;

    DV_LIST_EACH (&source->marks, link)
        if (holding_of(link) == holding)
            return true;
    return false;
}

static bool holds(const struct asker *asker, const struct holding *holding,
                  const struct dv_identity *identity)
{
    const struct entry *entry = find_entry(asker->ledger, identity);
    struct dv_link *link;

    if (!entry)
        return false;
    DV_LIST_EACH (&entry->sources, link)
        if (is_among(DV_CONTAINER(link, struct source, link), holding))
            return true;
    return false;
}

static bool find_elsewhere(const struct asker *asker, const struct holding *holding)
{
    if (!asker->has_pci || !has_pci(holding->identities, holding->n))
        return false;
    for (size_t i = 0; i < asker->n; i++)
        if (asker->identities[i].kind == DV_IDENTITY_PCI &&
            holds(asker, holding, &asker->identities[i]))
            return false;
    return true;
}

/* Whether both have PCI addresses, and none in common. It is asked for each node that the two share
 * and compares all addresses of both, so the last answer is kept. */
static bool is_elsewhere(struct asker *asker, const struct holding *holding)
{
    if (asker->met != holding) {
        asker->met = holding;
        asker->is_met_elsewhere = find_elsewhere(asker, holding);
    }
    return asker->is_met_elsewhere;
}

/* Whether a node or a path that both have is no proof that they have one device. */
static bool is_excused(struct asker *asker, const struct holding *holding,
                       const struct dv_identity *identity)
{
    if (asker->holder->way == DV_LEDGER_PLUGIN && holding->holder.way == DV_LEDGER_PLUGIN &&
        dv_str_eq(vendor_of(asker->holder), vendor_of(&holding->holder)))
        return true;
    return dv_lessons_is_common(&asker->ledger->lessons, &holding->holder, identity, false) ||
           is_elsewhere(asker, holding);
}

/* The first holding of another pod. One is enough: a node that is not common is the same device in
 * all holdings of a source. */
static const struct holding *rival_in(const struct source *source,
                                      const struct dv_ledger_holder *holder)
{
    struct dv_link *link;

    DV_LIST_EACH (&source->marks, link) {
        if (!dv_str_eq(holding_of(link)->holder.pod_uid, holder->pod_uid))
            return holding_of(link);
    }
    return NULL;
}

static const struct holding *find_rival(struct asker *asker, const struct dv_identity *identity)
{
    const struct entry *entry = find_entry(asker->ledger, identity);
    struct dv_link *link;

    if (!entry || dv_lessons_is_common(&asker->ledger->lessons, asker->holder, identity, true))
        return NULL;
    DV_LIST_EACH (&entry->sources, link) {
        const struct source *source = DV_CONTAINER(link, struct source, link);
        const struct holding *rival =
            is_from(source, asker->holder) ? NULL : rival_in(source, asker->holder);

        if (rival && (!is_node(identity) || !is_excused(asker, rival, identity)))
            return rival;
    }
    return NULL;
}

bool dv_ledger_check(const struct dv_ledger *ledger, const struct dv_ledger_holder *holder,
                     const struct dv_identity *identities, size_t n_identities,
                     struct dv_ledger_conflict *conflict)
{
    struct asker asker = {.ledger = ledger,
                          .holder = holder,
                          .identities = identities,
                          .n = n_identities,
                          .has_pci = has_pci(identities, n_identities)};

    for (int kind = 0; kind < DV_N_IDENTITY_KINDS; kind++) {
        for (size_t i = 0; i < n_identities; i++) {
            const struct holding *rival =
                (int)identities[i].kind == kind ? find_rival(&asker, &identities[i]) : NULL;

            if (rival) {
                *conflict = (struct dv_ledger_conflict){identities[i], &rival->holder};
                return false;
            }
        }
    }
    return true;
}

/* ---- releasing ---- */

void dv_ledger_release(struct dv_ledger *ledger, dv_str pod_uid)
{
    const struct pod *pod = dv_map_get(&ledger->pods, pod_uid);

    for (size_t n = pod ? pod->holdings.n : 0; n > 0; n--)
        drop_holding(ledger, pod->holdings.v[n - 1]);
}

/* ---- life ---- */

struct dv_ledger *dv_ledger_new(void)
{
    struct dv_ledger *ledger = DV_ALLOC(struct dv_ledger);

    for (size_t i = 0; i < DV_N_IDENTITY_KINDS; i++)
        dv_map_init(&ledger->entries[i]);
    dv_map_init(&ledger->pods);
    dv_lessons_init(&ledger->lessons);
    return ledger;
}

void dv_ledger_free(struct dv_ledger *ledger)
{
    const struct dv_map_entry *entry;

    if (!ledger)
        return;
    for (size_t at = 0; (entry = dv_map_next(&ledger->pods, &at)) != NULL;)
        dv_ledger_release(ledger, entry->key);
    for (size_t i = 0; i < DV_N_IDENTITY_KINDS; i++)
        dv_map_fini(&ledger->entries[i]);
    dv_map_fini(&ledger->pods);
    dv_lessons_fini(&ledger->lessons);
    free(ledger);
}

void dv_ledger_freep(struct dv_ledger **ledger)
{
    dv_ledger_free(*ledger);
}

/* ---- for people ---- */

/* "pod a/x through resource example.com/gpu device gpu0", "pod b/y through driver d.example.com
 * claim b/c device pool/gpu-0"; of many devices the first few. */
static void print_holder(const struct dv_ledger_holder *holder, struct dv_buf *buf)
{
    dv_buf_printf(buf, "pod %.*s/%.*s through %s %.*s", DV_FMT(holder->namespace),
                  DV_FMT(holder->name), holder->way == DV_LEDGER_PLUGIN ? "resource" : "driver",
                  DV_FMT(holder->giver));
    if (holder->claim.n > 0)
        dv_buf_printf(buf, " claim %.*s/%.*s", DV_FMT(holder->namespace), DV_FMT(holder->claim));
    if (holder->n_devices > 0)
        dv_buf_add_c(buf, holder->n_devices == 1 ? " device" : " devices");
    for (size_t i = 0; i < holder->n_devices && i < TOLD_DEVICES_MAX; i++)
        dv_buf_printf(buf, "%s %.*s", i > 0 ? "," : "", DV_FMT(holder->devices[i]));
    if (holder->n_devices > TOLD_DEVICES_MAX)
        dv_buf_printf(buf, " and %zu more", holder->n_devices - TOLD_DEVICES_MAX);
}

bool dv_ledger_conflict_fail(const struct dv_ledger_conflict *conflict,
                             const struct dv_ledger_holder *holder, struct dv_err *err)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TOLD_BYTES_MAX);
    print_holder(conflict->holder, &buf);
    dv_buf_add_c(&buf, "; wanted by ");
    print_holder(holder, &buf);
    return dv_fail(err, DV_FAILED_PRECONDITION, "%s %.*s is held by %s",
                   dv_identity_kind_name(conflict->identity.kind), DV_FMT(conflict->identity.text),
                   dv_buf_c(&buf));
}

bool dv_ledger_next(const struct dv_ledger *ledger, dv_str pod_uid, size_t *at,
                    const struct dv_ledger_holder **holder, const struct dv_identity **identities,
                    size_t *n_identities)
{
    const struct pod *pod = dv_map_get(&ledger->pods, pod_uid);
    const struct holding *holding;

    if (!pod || *at >= pod->holdings.n)
        return false;
    holding = pod->holdings.v[(*at)++];
    *holder = &holding->holder;
    *identities = holding->identities;
    *n_identities = holding->n;
    return true;
}
