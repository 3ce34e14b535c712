/* golden_cri_config__volumes.c - replays golden/cri-config on the disk: the volumes of every pod
 * are set up in a scratch directory, and all that lies there is compared: modes, owners, links,
 * contents.
 *
 *     golden_cri_config__volumes DIR      DIR holds pods.jsonl and node.json
 *
 * Mounting needs root; without it nothing is compared, and that is said. */
#include <errno.h>
#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/str.h"
#include "base/vec.h"
#include "cri_config_case.h"
#include "jsonl.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "voldir/voldir.h"
#include "workload/config.h"
#include "workload/volume.h"
#include "workload/workload.h"
#include "json/json.h"

#define TEXT_BYTES_MAX (4u * 1024u * 1024u)
#define WAIT_MS 60000u
/* Of a directory with files: "..2026_01_02_03_04_05.0123456789"; the corpus says "..<time>". */
#define STAMP_BYTES 32u

typedef DV_VEC(dv_str) line_list;

static const char *dir;
static char scratch[] = "/tmp/davit-golden-volumes-XXXXXX";
static struct dv_loop *loop;

/* -- What is compared: a line for each file, directory and link -------------------------------- */

struct entry {
    dv_str path;
    const char *kind; /* "dir", "link", "file" */
    unsigned mode;    /* not of links */
    long long uid;
    long long gid;
    dv_str what; /* a link's target, a file's content */
};

static void add_line(line_list *lines, const struct entry *entry, struct dv_arena *arena)
{
    struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_buf_printf(&buf, "%.*s %s %o %lld:%lld ", DV_FMT(entry->path), entry->kind, entry->mode,
                  entry->uid, entry->gid);
    if (strcmp(entry->kind, "file") == 0)
        dv_base64_encode(entry->what, &buf);
    else
        dv_buf_add(&buf, entry->what);
    *dv_vec_add_in(lines, arena) = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
}

/* With "..<time>" for the names of directories that are made for files. */
static dv_str without_stamp(dv_str path, struct dv_arena *arena)
{
    for (size_t at = 0; at + STAMP_BYTES <= path.n; at++)
        if (dv_str_starts_with(dv_str_slice(path, at, path.n), DV_STR("..20")) &&
            (at == 0 || path.p[at - 1] == '/'))
            return dv_str_printf(arena, "%.*s..<time>%.*s", (int)at, path.p,
                                 DV_FMT(dv_str_slice(path, at + STAMP_BYTES, path.n)));
    return path;
}

static dv_str text_of(const struct dv_json *file, const char *key)
{
    const struct dv_json *node = dv_json_get(file, dv_str_from_c(key));
    struct dv_err err;
    dv_str text;

    return node && dv_json_as_str(node, &text, &err) ? text : DV_STR_NONE;
}

static long long number_of(const struct dv_json *file, const char *key)
{
    const struct dv_json *node = dv_json_get(file, dv_str_from_c(key));
    struct dv_err err;
    int64_t number;

    return node && dv_json_as_i64(node, &number, &err) ? number : -1;
}

static void read_recorded(const struct dv_json *list, struct dv_arena *arena, line_list *lines)
{
    for (const struct dv_json *file = dv_json_first(list); file; file = dv_json_next(file)) {
        dv_str mode = text_of(file, "mode"); /* "0o644" */
        struct entry entry = {
            .path = text_of(file, "path"),
            .kind = "file",
            .mode = mode.n > 2 ? (unsigned)strtoul(dv_str_to_c(mode, arena) + 2, NULL, 8) : 0,
            .uid = number_of(file, "uid"),
            .gid = number_of(file, "gid"),
            .what = text_of(file, "content"),
        };

        if (text_of(file, "type").n > 0) {
            entry.kind = "dir";
        } else if (text_of(file, "link").n > 0) {
            entry.kind = "link";
            entry.what = text_of(file, "link");
        } else if (text_of(file, "contentBase64").n > 0 &&
                   !dv_base64_decode(text_of(file, "contentBase64"), arena, &entry.what)) {
            exit(2); /* not what the README says */
        }
        add_line(lines, &entry, arena);
    }
}

/* nftw has no argument for its callback. */
static struct {
    line_list *lines;
    struct dv_arena *arena;
    size_t n_prefix;
} walk;

static int look_at(const char *path, const struct stat *about, int type, struct FTW *at)
{
    dv_str below = dv_str_from_c(path + walk.n_prefix);
    char target[4096];
    struct dv_err err;
    struct entry entry = {
        .path = without_stamp(below, walk.arena),
        .kind = "dir",
        .mode = about->st_mode & 07777,
        .uid = about->st_uid,
        .gid = about->st_gid,
    };

    if (at->level < 2) /* "volumes" and the directories of plugins are not recorded */
        return 0;
    if (type == FTW_F &&
        !dv_file_read(dv_str_from_c(path), TEXT_BYTES_MAX, walk.arena, &entry.what, &err))
        return -1;
    if (type == FTW_F)
        entry.kind = "file";
    if (type == FTW_SL) {
        ssize_t n = readlink(path, target, sizeof(target));

        entry.kind = "link";
        entry.mode = 0;
        entry.what = without_stamp((dv_str){target, n > 0 ? (size_t)n : 0}, walk.arena);
    }
    add_line(walk.lines, &entry, walk.arena);
    return 0;
}

static void read_made(const struct dv_volume_plan *plan, struct dv_arena *arena, line_list *lines)
{
    const char *path = dv_str_printf(arena, "%.*s/volumes", DV_FMT(plan->pod_dir)).p;

    walk.lines = lines;
    walk.arena = arena;
    walk.n_prefix = strlen(path) + 1;
    if (access(path, F_OK) == 0 && nftw(path, look_at, 16, FTW_PHYS) != 0)
        exit(2);
}

/* Both are sorted; what only one has is told. */
static void compare(struct jsonl_record *record, line_list *got, line_list *want)
{
    size_t i = 0;
    size_t k = 0;

    if (got->n > 0)
        qsort(got->v, got->n, sizeof(got->v[0]), dv_str_compare);
    if (want->n > 0)
        qsort(want->v, want->n, sizeof(want->v[0]), dv_str_compare);
    while (i < got->n || k < want->n) {
        int order = i == got->n ? 1 : k == want->n ? -1 : dv_str_cmp(got->v[i], want->v[k]);

        if (order < 0)
            jsonl_compare_str(record, "made", got->v[i], DV_STR(""));
        if (order > 0)
            jsonl_compare_str(record, "recorded", DV_STR(""), want->v[k]);
        i += order <= 0;
        k += order >= 0;
    }
}

/* -- Jobs ---------------------------------------------------------------------------------------
 */

static int n_done;
static struct dv_err last_err;

static void note_end(const struct dv_err *err)
{
    n_done++;
    if (err)
        last_err = *err;
    else
        (void)dv_succeed(&last_err);
}

static void on_set_up(struct dv_voldir_set_up *op, const struct dv_err *err)
{
    (void)op;
    note_end(err);
}

static void on_sub_path(struct dv_voldir_sub_path *op, const struct dv_err *err)
{
    (void)op;
    note_end(err);
}

static void on_torn_down(struct dv_voldir_tear_down *op, const struct dv_err *err)
{
    (void)op;
    note_end(err);
}

static bool is_done(void *ctx)
{
    (void)ctx;
    return n_done > 0;
}

static void wait_for(struct jsonl_record *record, const char *what)
{
    if (!dv_loop_run_until(loop, is_done, NULL, WAIT_MS))
        exit(2);
    n_done = 0;
    jsonl_compare_str(record, what, dv_str_from_c(last_err.msg), DV_STR(""));
}

/* -- Cases --------------------------------------------------------------------------------------
 */

/* Host paths are the machine's. */
static struct dv_volume_plan *plan_volumes(const struct cri_config_case *of)
{
    struct dv_volume_input input = {.node = &of->node, .pod = &of->pod, .objects = &of->objects};
    struct dv_volume_token *tokens = dv_volume_tokens(of->api, of->arena, &input.n_tokens);
    struct dv_volume_plan *plan;
    size_t n = 0;

    for (size_t i = 0; i < input.n_tokens; i++)
        tokens[i].text = DV_STR("<token>");
    input.tokens = tokens;
    plan = dv_volume_plan(&input, of->arena);
    for (size_t i = 0; i < plan->n_volumes; i++)
        if (plan->volumes[i].kind != DV_VOLUME_HOST_PATH)
            plan->volumes[n++] = plan->volumes[i];
    plan->n_volumes = n;
    return plan;
}

static void bind_parts(struct jsonl_record *record, const struct cri_config_case *of,
                       const struct dv_volume_plan *plan, const struct dv_api_container *container)
{
    struct dv_config_input input = {.node = &of->node,
                                    .pod = &of->pod,
                                    .objects = &of->objects,
                                    .container = container,
                                    .kind = DV_WORKLOAD_REGULAR};
    struct dv_config_environment environment;
    struct dv_err err;
    dv_str *paths;

    if (!dv_config_environment(&input, of->arena, &environment, &err) ||
        !dv_config_sub_paths(&input, &environment, of->arena, &paths, &err))
        return; /* golden_cri_config compares why */
    for (size_t i = 0; i < container->n_volume_mounts; i++) {
        const struct dv_volume *volume = dv_volume_find(plan, container->volume_mounts[i].name);
        struct dv_voldir_sub_path op = {.done = on_sub_path,
                                        .plan = plan,
                                        .volume = container->volume_mounts[i].name,
                                        .sub_path = paths[i],
                                        .container = container->name,
                                        .index = i,
                                        .arena = of->arena};

        if (paths[i].n == 0 || !volume || volume->kind == DV_VOLUME_IMAGE)
            continue;
        dv_voldir_sub_path(&op, loop);
        wait_for(record, "subPath");
    }
}

static void replay_case(struct jsonl_record *record)
{
    struct cri_config_case of;
    struct dv_volume_plan *plan;
    struct dv_voldir_set_up op = {.done = on_set_up, .arena = record->arena};
    struct dv_voldir_tear_down down = {.done = on_torn_down};
    line_list got = {0};
    line_list want = {0};

    cri_config_read(record->json, cri_config_read_node(dir, record->arena), record->arena, &of);
    of.node.root_dir = dv_str_from_c(scratch);
    of.node.log_dir = dv_str_printf(record->arena, "%s/logs", scratch);
    plan = plan_volumes(&of);
    op.plan = plan;
    dv_voldir_set_up(&op, loop);
    wait_for(record, "set-up");
    for (size_t i = 0; i < of.api->spec.n_init_containers; i++)
        bind_parts(record, &of, plan, &of.api->spec.init_containers[i]);
    for (size_t i = 0; i < of.api->spec.n_containers; i++)
        bind_parts(record, &of, plan, &of.api->spec.containers[i]);
    read_made(plan, record->arena, &got);
    read_recorded(dv_json_get(record->json, DV_STR("volumeFiles")), record->arena, &want);
    compare(record, &got, &want);
    down.root_dir = of.node.root_dir;
    down.uid = plan->uid;
    dv_voldir_tear_down(&down, loop);
    wait_for(record, "tear-down");
}

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *at)
{
    (void)about;
    (void)type;
    (void)at;
    return remove(path);
}

int main(int argc, char **argv)
{
    static const struct jsonl_replay replays[] = {
        {.kind = {.name = "pods.jsonl", .has = {"pod", "containers"}}, .replay = replay_case},
    };
    struct dv_err err;
    int status;

    /* What is mounted is seen by nobody else, and goes with this process. */
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
        printf("not replayed: mounting needs root: %s\n0 passed, 0 failed\n", strerror(errno));
        return 0;
    }
    dir = argc == 2 ? argv[1] : ".";
    loop = dv_loop_new(dv_clock_real(), &err);
    if (!loop || !mkdtemp(scratch))
        return 2;
    status = jsonl_main(argc, argv, replays, DV_COUNT(replays));
    (void)nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    dv_loop_free(loop);
    return status;
}
