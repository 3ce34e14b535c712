/* ledger.c - identities to those who hold them.
 *
 *     identity --> entry: sources (a resource or a driver): runs (of a pod): marks --> holding
 *
 * All holdings of an identity through one source stand together, and in it those of a pod, as far
 * as they came one after the other: whether one of them speaks against a newcomer is told by the
 * first one of another pod, so shares of a device cost nothing, nor do a pod's own many. */
#include "pod/ledger/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/key.h"
#include "base/list.h"
#include "base/map.h"
#include "base/row.h"
#include "pod/ledger/lessons.h"

struct entry {
    enum dv_identity_kind kind;
    dv_str key;
    struct dv_list sources;
    char text[];
};

/* Marks of one pod. */
struct run {
    struct dv_link link; /* of the source */
    struct source *source;
    const struct pod *pod;
    struct dv_list marks;
};

struct source {
    struct dv_link link; /* of the entry */
    struct entry *entry;
    struct dv_list runs;
    struct run first; /* few sources have more than one */
    enum dv_ledger_giver_kind giver_kind;
    dv_str giver;
    char text[];
};

/* The link between a holding and one of its identities. */
struct mark {
    struct dv_link link; /* of the run */
    struct run *run;
    struct holding *holding;
};

struct pod {
    struct dv_map holdings; /* by key */
    dv_str uid;
    char text[];
};

struct holding {
    struct dv_arena *arena;
    struct pod *pod;
    dv_str key; /* all that tells holders of one pod apart */
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
    return source->giver_kind == holder->giver_kind && dv_str_eq(source->giver, holder->giver);
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
    source->giver_kind = holder->giver_kind;
    source->giver = put_text(source->text, holder->giver);
    dv_list_init(&source->runs);
    dv_list_push(&entry->sources, &source->link);
    return source;
}

static struct run *run_of(struct dv_link *link)
{
    return DV_CONTAINER(link, struct run, link);
}

static const struct holding *holding_of(struct dv_link *link)
{
    return DV_CONTAINER(link, struct mark, link)->holding;
}

/* The run for a mark of the pod: the last one if it is the pod's, else a new one. */
static struct run *make_run(struct source *source, const struct pod *pod)
{
    bool has_any = !dv_list_is_empty(&source->runs);
    struct run *run = has_any ? run_of(source->runs.head.prev) : &source->first;

    if (has_any && run->pod == pod)
        return run;
    if (has_any)
        run = DV_ALLOC(struct run);
    run->source = source;
    run->pod = pod;
    dv_list_init(&run->marks);
    dv_list_push(&source->runs, &run->link);
    return run;
}

/* ---- holding ---- */

static void add_mark(struct dv_ledger *ledger, struct holding *holding, size_t i)
{
    struct entry *entry = make_entry(ledger, &holding->identities[i]);
    struct mark *mark = &holding->marks[i];

    mark->holding = holding;
    mark->run = make_run(make_source(entry, &holding->holder), holding->pod);
    dv_list_push(&mark->run->marks, &mark->link);
}

static void drop_mark(struct dv_ledger *ledger, struct mark *mark)
{
    struct run *run = mark->run;
    struct source *source = run->source;
    struct entry *entry = source->entry;

    dv_link_remove(&mark->link);
    if (!dv_list_is_empty(&run->marks))
        return;
    dv_link_remove(&run->link);
    if (run != &source->first)
        free(run);
    if (!dv_list_is_empty(&source->runs))
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

    for (size_t i = 0; i < holding->n; i++)
        drop_mark(ledger, &holding->marks[i]);
    (void)dv_map_remove(&pod->holdings, holding->key);
    dv_arena_free(holding->arena);
    if (pod->holdings.n > 0)
        return;
    (void)dv_map_remove(&ledger->pods, pod->uid);
    dv_map_fini(&pod->holdings);
    free(pod);
}

static struct pod *make_pod(struct dv_ledger *ledger, dv_str uid)
{
    struct pod *pod = dv_map_get(&ledger->pods, uid);

    if (pod)
        return pod;
    pod = dv_alloc(sizeof(*pod) + uid.n);
    pod->uid = put_text(pod->text, uid);
    dv_map_init(&pod->holdings);
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
        .giver_kind = holder->giver_kind,
        .giver = dv_str_copy(holder->giver, arena),
        .claim = dv_str_copy(holder->claim, arena),
        .devices = devices,
        .n_devices = holder->n_devices,
    };
}

/* A pod may have tens of thousands of holdings, and one of them as many devices. */
static dv_str key_of(const struct dv_ledger_holder *holder, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf key;

    dv_buf_init(&key, DV_ROW_BYTES_MAX); /* its devices are those of a row */
    dv_buf_add_char(&key, holder->giver_kind == DV_LEDGER_PLUGIN ? 'p' : 'd');
    dv_key_add(&key, holder->giver);
    dv_key_add(&key, holder->claim);
    dv_key_add(&key, holder->container);
    for (size_t i = 0; i < holder->n_devices; i++)
        dv_key_add(&key, holder->devices[i]);
    return dv_str_copy(dv_buf_str(&key), arena);
}

static void drop_former(struct dv_ledger *ledger, const struct holding *holding)
{
    const struct pod *pod = dv_map_get(&ledger->pods, holding->holder.pod_uid);
    struct holding *former = pod ? dv_map_get(&pod->holdings, holding->key) : NULL;

    if (former)
        drop_holding(ledger, former);
}

void dv_ledger_hold(struct dv_ledger *ledger, const struct dv_ledger_holder *holder,
                    const struct dv_identity *identities, size_t n_identities)
{
    struct dv_arena *arena = dv_arena_new();
    struct holding *holding = DV_NEW(arena, struct holding);

    holding->arena = arena;
    copy_holder(holding, holder);
    holding->key = key_of(holder, arena);
    holding->n = n_identities;
    holding->identities = DV_NEW_ARRAY(arena, struct dv_identity, n_identities);
    holding->marks = DV_NEW_ARRAY(arena, struct mark, n_identities);
    for (size_t i = 0; i < n_identities; i++)
        holding->identities[i] =
            (struct dv_identity){identities[i].kind, dv_str_copy(identities[i].text, arena)};
    /* The former holding goes last: the texts that are given may be its own. */
    drop_former(ledger, holding);
    holding->pod = make_pod(ledger, holding->holder.pod_uid);
    (void)dv_map_set(&holding->pod->holdings, holding->key, holding);
    for (size_t i = 0; i < n_identities; i++)
        add_mark(ledger, holding, i);
}

bool dv_ledger_learn(struct dv_ledger *ledger, dv_str pod_uid, size_t n_max)
{
    const struct pod *pod = dv_map_get(&ledger->pods, pod_uid);
    const struct dv_map_entry *entry;
    size_t n_seen = 0;

    for (size_t at = 0; pod && (entry = dv_map_next(&pod->holdings, &at)) != NULL;) {
        struct holding *holding = entry->value;

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
    const struct pod *pod; /* NULL: it holds nothing yet */
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
    struct dv_link *at;
    struct dv_link *link;

    DV_LIST_EACH (&source->runs, at) {
        if (run_of(at)->pod != holding->pod)
            continue;
        DV_LIST_EACH (&run_of(at)->marks, link)
            if (holding_of(link) == holding)
                return true;
    }
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
    if (asker->holder->giver_kind == DV_LEDGER_PLUGIN &&
        holding->holder.giver_kind == DV_LEDGER_PLUGIN &&
        dv_str_eq(vendor_of(asker->holder), vendor_of(&holding->holder)))
        return true;
    return dv_lessons_is_common(&asker->ledger->lessons, &holding->holder, identity, false) ||
           is_elsewhere(asker, holding);
}

/* The first holding of another pod. One is enough: a node that is not common is the same device in
 * all holdings of a source. */
static const struct holding *rival_in(const struct source *source, const struct pod *pod)
{
    struct dv_link *link;

    DV_LIST_EACH (&source->runs, link) {
        if (run_of(link)->pod != pod)
            return holding_of(dv_list_first(&run_of(link)->marks));
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
            is_from(source, asker->holder) ? NULL : rival_in(source, asker->pod);

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
                          .pod = dv_map_get(&ledger->pods, holder->pod_uid),
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
    size_t at = 0;

    for (size_t n = pod ? pod->holdings.n : 0; n > 0; n--) /* the pod goes with the last one */
        drop_holding(ledger, dv_map_next(&pod->holdings, &at)->value);
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

bool dv_ledger_next(const struct dv_ledger *ledger, dv_str pod_uid, size_t *at,
                    const struct dv_ledger_holder **holder, const struct dv_identity **identities,
                    size_t *n_identities)
{
    const struct pod *pod = dv_map_get(&ledger->pods, pod_uid);
    const struct dv_map_entry *entry = pod ? dv_map_next(&pod->holdings, at) : NULL;
    const struct holding *holding;

    if (!entry)
        return false;
    holding = entry->value;
    *holder = &holding->holder;
    *identities = holding->identities;
    *n_identities = holding->n;
    return true;
}
