/* builtin_claims.c - what claims hold: a record and a CDI spec each, both files.
 *
 * The record is written before the spec and removed after it, so that what a crash leaves is found
 * by the record. An answer is computed from the claim and the devices that there are: asked again,
 * after a restart or a boot, it is the same. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/vec.h"
#include "builtin/builtin_state.h"
#include "davit/dra.h"

#define RECORD_BYTES_MAX (4u * 1024u * 1024u)
#define RECORD_SUFFIX ".json"

/* ---- files, by a worker ---- */

struct write {
    struct dv_work work;
    struct dv_builtin_driver *builtin;
    struct dv_arena *arena;
    struct dv_link link;
    struct davit_call *call; /* that waits for it; NULL: none does */
    dv_str uid;
    dv_str record_path;
    dv_str record; /* empty: both files are to be removed */
    dv_str spec_path;
    dv_str spec; /* empty: none is needed */
    struct dv_offer_given *given;
    const struct davit_dra_result **results; /* for each of `given` */
    size_t n_given;
    struct dv_err err; /* code DV_OK: nothing has gone wrong */
};

static bool remove_file(dv_str path, struct dv_arena *arena, struct dv_err *err)
{
    if (path.n == 0 || unlink(dv_str_to_c(path, arena)) == 0 || errno == ENOENT)
        return true;
    return dv_fail_errno(err, errno, "remove %.*s", DV_FMT(path));
}

static bool write_files(struct write *write, struct dv_err *err)
{
    if (write->record.n == 0)
        return remove_file(write->spec_path, write->arena, err) &&
               remove_file(write->record_path, write->arena, err);
    return dv_file_replace(write->record_path, write->record, 0600, err) &&
           (write->spec.n == 0 || dv_file_replace(write->spec_path, write->spec, 0644, err));
}

static void run_write(struct dv_work *work)
{
    struct write *write = DV_CONTAINER(work, struct write, work);

    if (!write_files(write, &write->err) && write->err.code == DV_OK)
        write->err.code = DV_INTERNAL;
}

static struct write *new_write(struct dv_builtin_driver *builtin, dv_str uid)
{
    struct write *write = DV_ALLOC(struct write);

    write->builtin = builtin;
    write->arena = dv_arena_new();
    write->uid = dv_str_copy(uid, write->arena);
    write->record_path = dv_str_printf(write->arena, "%.*s/%.*s" RECORD_SUFFIX,
                                       DV_FMT(builtin->record_dir), DV_FMT(uid));
    write->spec_path = dv_str_printf(write->arena, "%.*s/" DV_OFFER_DRIVER "-%.*s.json",
                                     DV_FMT(builtin->options.cdi_dir), DV_FMT(uid));
    dv_list_push(&builtin->writes, &write->link);
    return write;
}

static void free_write(struct write *write)
{
    dv_link_remove(&write->link);
    dv_arena_free(write->arena);
    free(write);
}

static void start(struct write *write, void (*done)(struct dv_work *work, const struct dv_err *err))
{
    write->work.run = run_write;
    write->work.done = done;
    dv_work_start(&write->work, write->builtin->loop);
}

/* Frees the write, and tells who closes the driver. */
static void end(struct write *write)
{
    struct dv_builtin_driver *builtin = write->builtin;

    free_write(write);
    if (builtin->is_closing)
        dv_builtin_part_closed(builtin);
}

/* ---- records ---- */

static void free_claim(struct dv_builtin_claim *claim)
{
    if (!claim)
        return;
    dv_arena_free(claim->arena);
    free(claim);
}

static void keep(struct dv_builtin_driver *builtin, struct dv_builtin_claim *claim)
{
    free_claim(dv_map_remove(&builtin->claims, claim->record.claim_uid));
    dv_map_set(&builtin->claims, claim->record.claim_uid, claim);
}

static void forget(struct dv_builtin_driver *builtin, dv_str uid)
{
    free_claim(dv_map_remove(&builtin->claims, uid));
}

/* ---- preparing ---- */

static const struct dv_offer_record *find_rival(const struct dv_builtin_driver *builtin,
                                                const struct dv_offer_device *device)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&builtin->claims, &at)) != NULL;) {
        const struct dv_offer_record *record = &((struct dv_builtin_claim *)entry->value)->record;

        if (dv_offer_rival(device, &record, 1))
            return record;
    }
    return NULL;
}

/* Finds the devices of the claim. */
static bool find_given(struct write *write, const struct davit_dra_claim *claim, struct dv_err *err)
{
    const struct dv_builtin_driver *builtin = write->builtin;

    write->given = DV_NEW_ARRAY(write->arena, struct dv_offer_given, claim->n_results);
    write->results = DV_NEW_ARRAY(write->arena, const struct davit_dra_result *, claim->n_results);
    for (size_t i = 0; i < claim->n_results; i++) {
        const struct davit_dra_result *result = &claim->results[i];
        dv_str name = dv_str_from_c(result->device);
        const struct dv_offer_device *device = dv_offer_find(&builtin->now->list, name);
        const struct dv_offer_record *rival;

        if (!dv_str_eq(dv_str_from_c(result->pool), builtin->options.node_name))
            return dv_fail(err, DV_INVALID_ARGUMENT, "device %.*s is of pool %s, not of this node",
                           DV_FMT(name), result->pool);
        if (!device)
            return dv_fail(err, DV_NOT_FOUND,
                           "device %.*s is not there: it was unplugged, or is not offered any more",
                           DV_FMT(name));
        rival = find_rival(builtin, device);
        if (rival && !result->is_admin)
            return dv_fail(
                err, DV_FAILED_PRECONDITION,
                "device %.*s has the node of one that was unplugged while claim %.*s held "
                "it, and that claim still can use it",
                DV_FMT(name), DV_FMT(rival->claim));
        write->given[i] = (struct dv_offer_given){
            .device = device, .request = dv_str_copy(dv_str_from_c(result->request), write->arena)};
        write->results[i] = result;
    }
    write->n_given = claim->n_results;
    return true;
}

/* Computes what the claim gets, and both files; the record is kept from now on. */
static bool compute(struct write *write, dv_str claim, struct dv_err *err)
{
    struct dv_builtin_driver *builtin = write->builtin;
    struct dv_builtin_claim *kept = DV_ALLOC(struct dv_builtin_claim);
    struct dv_buf buf;
    bool needs_spec;
    bool is_good;

    dv_buf_init(&buf, RECORD_BYTES_MAX);
    needs_spec = dv_offer_spec_print(write->uid, write->given, write->n_given,
                                     builtin->options.dev_dir, write->arena, &buf);
    write->spec = needs_spec ? dv_str_copy(dv_buf_str(&buf), write->arena) : DV_STR("");
    is_good = dv_buf_check(&buf, "the claim's CDI spec", err);
    dv_buf_clear(&buf);
    kept->arena = dv_arena_new();
    dv_offer_record_make(write->uid, claim, needs_spec ? write->spec_path : DV_STR(""),
                         write->given, write->n_given, kept->arena, &kept->record);
    dv_offer_record_print(&kept->record, &buf);
    write->record = dv_str_copy(dv_buf_str(&buf), write->arena);
    is_good = is_good && dv_buf_check(&buf, "the claim's record", err);
    dv_buf_fini(&buf);
    if (is_good)
        keep(builtin, kept);
    else
        free_claim(kept);
    return is_good;
}

static void answer(struct write *write)
{
    struct davit_dra_prepared prepared = {.n_requests = 1, .n_cdi = 1};

    for (size_t i = 0; i < write->n_given; i++) {
        const char *cdi = dv_str_to_c(write->given[i].cdi_name, write->arena);

        prepared.requests = &write->results[i]->request;
        prepared.pool = write->results[i]->pool;
        prepared.device = write->results[i]->device;
        prepared.share_id = write->results[i]->share_id;
        prepared.cdi = &cdi;
        davit_dra_add_device(write->call, &prepared);
    }
    davit_call_finish(write->call);
}

static void on_prepared(struct dv_work *work, const struct dv_err *err)
{
    struct write *write = DV_CONTAINER(work, struct write, work);
    struct dv_builtin_driver *builtin = write->builtin;
    const struct dv_err *failure = err ? err : write->err.code != DV_OK ? &write->err : NULL;

    /* While the driver closes, its calls have been ended already. */
    if (!builtin->is_closing) {
        if (failure)
            davit_call_fail(write->call, (enum davit_code)failure->code, "%s", failure->msg);
        else
            answer(write);
        dv_builtin_tell_health(builtin);
        dv_builtin_tell(builtin);
    }
    end(write);
}

void dv_builtin_prepare(void *ctx, struct davit_call *call, const struct davit_dra_claim *claim)
{
    struct dv_builtin_driver *builtin = ctx;
    struct write *write = new_write(builtin, dv_str_from_c(claim->ref.uid));
    struct dv_err err;

    write->call = call;
    if (find_given(write, claim, &err) &&
        compute(write,
                dv_str_printf(write->arena, "%s/%s", claim->ref.claim_namespace, claim->ref.name),
                &err)) {
        start(write, on_prepared);
        return;
    }
    free_write(write);
    davit_call_fail(call, (enum davit_code)err.code, "%s", err.msg);
}

/* ---- unpreparing ---- */

static void on_unprepared(struct dv_work *work, const struct dv_err *err)
{
    struct write *write = DV_CONTAINER(work, struct write, work);
    struct dv_builtin_driver *builtin = write->builtin;
    const struct dv_err *failure = err ? err : write->err.code != DV_OK ? &write->err : NULL;

    if (!builtin->is_closing) {
        if (failure) {
            davit_call_fail(write->call, (enum davit_code)failure->code, "%s", failure->msg);
        } else {
            forget(builtin, write->uid);
            davit_call_finish(write->call);
            dv_builtin_tell_health(builtin);
            dv_builtin_tell(builtin);
            if (builtin->has_taints)
                dv_builtin_publish(builtin);
        }
    }
    end(write);
}

void dv_builtin_unprepare(void *ctx, struct davit_call *call,
                          const struct davit_dra_claim_ref *claim)
{
    struct write *write = new_write(ctx, dv_str_from_c(claim->uid));

    write->call = call;
    start(write, on_unprepared);
}

/* ---- devices that come back under other numbers ---- */

/* Whether all devices of the record are there, and some have other nodes than were given. */
static bool has_moved(struct write *write, const struct dv_offer_record *record)
{
    const struct dv_offer_list *list = &write->builtin->now->list;
    struct dv_offer_record now;
    struct dv_buf old_text, new_text;
    bool is_moved;

    write->given = DV_NEW_ARRAY(write->arena, struct dv_offer_given, record->n_devices);
    write->n_given = record->n_devices;
    for (size_t i = 0; i < record->n_devices; i++) {
        write->given[i] = (struct dv_offer_given){
            .device = dv_offer_find(list, record->devices[i].name),
            .request = dv_str_copy(record->devices[i].request, write->arena)};
        if (!write->given[i].device)
            return false;
    }
    dv_offer_record_make(record->claim_uid, record->claim, record->spec, write->given,
                         write->n_given, write->arena, &now);
    dv_buf_init(&old_text, RECORD_BYTES_MAX);
    dv_buf_init(&new_text, RECORD_BYTES_MAX);
    dv_offer_record_print(record, &old_text);
    dv_offer_record_print(&now, &new_text);
    is_moved = !dv_str_eq(dv_buf_str(&old_text), dv_buf_str(&new_text));
    dv_buf_fini(&old_text);
    dv_buf_fini(&new_text);
    return is_moved;
}

static void on_followed(struct dv_work *work, const struct dv_err *err)
{
    struct write *write = DV_CONTAINER(work, struct write, work);

    if (err || write->err.code != DV_OK)
        dv_log(DV_LOG_WARN, "builtin: a claim's files cannot be written anew",
               DV_F_STR("claim", write->uid), DV_F_ERR(err ? err : &write->err));
    else
        dv_log(DV_LOG_INFO, "builtin: a claim's device has come back with other nodes",
               DV_F_STR("claim", write->uid));
    end(write);
}

static bool is_being_written(const struct dv_builtin_driver *builtin, dv_str uid)
{
    struct dv_link *link;

    DV_LIST_EACH (&builtin->writes, link)
        if (dv_str_eq(DV_CONTAINER(link, struct write, link)->uid, uid))
            return true;
    return false;
}

void dv_builtin_claims_follow(struct dv_builtin_driver *builtin)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    DV_VEC(dv_str) uids = {0};
    const struct dv_map_entry *entry;
    struct dv_err err;

    for (size_t at = 0; (entry = dv_map_next(&builtin->claims, &at)) != NULL;)
        *dv_vec_add_in(&uids, scratch) = dv_str_copy(entry->key, scratch);
    for (size_t i = 0; i < uids.n; i++) {
        const struct dv_builtin_claim *claim = dv_map_get(&builtin->claims, uids.v[i]);
        struct write *write;

        if (is_being_written(builtin, uids.v[i]))
            continue; /* it is prepared with what is there now, or it goes */
        write = new_write(builtin, uids.v[i]);
        if (has_moved(write, &claim->record) &&
            compute(write, dv_str_copy(claim->record.claim, write->arena), &err))
            start(write, on_followed);
        else
            free_write(write);
    }
}

/* ---- the start ---- */

static void load(struct dv_builtin_driver *builtin, dv_str name)
{
    struct dv_builtin_claim *claim = DV_ALLOC(struct dv_builtin_claim);
    const struct dv_builtin_options *options = &builtin->options;
    struct dv_err err;
    dv_str path, text;

    claim->arena = dv_arena_new();
    path = dv_str_printf(claim->arena, "%.*s/%.*s", DV_FMT(builtin->record_dir), DV_FMT(name));
    if (!dv_file_read(path, RECORD_BYTES_MAX, claim->arena, &text, &err) ||
        !dv_offer_record_parse(text, claim->arena, &claim->record, &err)) {
        dv_log(DV_LOG_WARN,
               "builtin: a claim's record cannot be used; its device may be given away",
               DV_F_STR("file", path), DV_F_ERR(&err));
    } else if (options->is_claim_known &&
               !options->is_claim_known(options->ctx, claim->record.claim_uid)) {
        dv_log(DV_LOG_INFO, "builtin: what is left of a claim is removed",
               DV_F_STR("claim", claim->record.claim));
        if (!remove_file(claim->record.spec, claim->arena, &err) ||
            !remove_file(path, claim->arena, &err))
            dv_log(DV_LOG_WARN, "builtin: a file stays", DV_F_ERR(&err));
    } else {
        keep(builtin, claim);
        return;
    }
    free_claim(claim);
}

static bool make_dir(dv_str path, struct dv_arena *arena, struct dv_err *err)
{
    return mkdir(dv_str_to_c(path, arena), 0750) == 0 || errno == EEXIST ||
           dv_fail_errno(err, errno, "make %.*s", DV_FMT(path));
}

bool dv_builtin_claims_load(struct dv_builtin_driver *builtin, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    dv_str plugins = dv_str_printf(scratch, "%.*s/plugins", DV_FMT(builtin->options.kubelet_dir));
    const struct dirent *entry;
    DIR *dir;

    builtin->record_dir = dv_str_printf(builtin->arena, "%.*s/" DV_OFFER_DRIVER, DV_FMT(plugins));
    if (!make_dir(plugins, scratch, err) || !make_dir(builtin->record_dir, scratch, err))
        return false;
    /* Where specs go: a runtime directory, which a boot leaves empty or not there. */
    if (!make_dir(builtin->options.cdi_dir, scratch, err))
        return false;
    dir = opendir(dv_str_to_c(builtin->record_dir, scratch));
    if (!dir)
        return dv_fail_errno(err, errno, "read %.*s", DV_FMT(builtin->record_dir));
    while ((entry = readdir(dir)) != NULL)
        if (dv_str_ends_with(dv_str_from_c(entry->d_name), DV_STR(RECORD_SUFFIX)))
            load(builtin, dv_str_from_c(entry->d_name));
    (void)closedir(dir);
    return true;
}

void dv_builtin_claims_fini(struct dv_builtin_driver *builtin)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&builtin->claims, &at)) != NULL;)
        free_claim(entry->value);
    dv_map_fini(&builtin->claims);
}
