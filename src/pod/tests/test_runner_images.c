/* Images on a disk that counts as full, over a runtime that runs nothing. */
#include "support/dvtest.h"

#include <stdbool.h>
#include <string.h>

#include "base/defs.h"
#include "cri/cri.h"
#include "pod/runner.h"
#include "pod/tests/test_agent_host.h"
#include "resource/resource.h"
#include "support/cri_runtime.h"

/* A disk with programs is never empty, and one of the kernel's own has no size. */
#define USED_DIR "/usr"
#define SIZELESS_DIR "/proc"

/* Begins anew with images at 2 and 3, and these rules: anything on the disk is too much. */
static void begin(struct world *world, const char *dir, uint64_t min_age_ns)
{
    world_close_node(world);
    world->runtime->images[2] = "old:1";
    world->runtime->images[3] = "kept:1";
    world->runtime->pinned = world->runtime->images[3];
    world->runtime->image_dir = dir;
    world->images =
        (struct dv_image_policy){.high_percent = 1, .low_percent = 0, .min_age_ns = min_age_ns};
    world_open_node(world);
}

static bool has_image(const struct world *world, const char *name)
{
    for (size_t i = 0; i < 8; i++)
        if (world->runtime->images[i] && strcmp(world->runtime->images[i], name) == 0)
            return true;
    return false;
}

/* Passes time until there is an event of this reason; its text. The disk is looked at by a worker,
 * whose time is not ours. */
static const char *await(struct world *world, const char *reason)
{
    const char *message = NULL;

    for (int i = 0; i < 6000 && n_events(world, reason, &message) == 0; i++)
        pass(world, 100);
    if (n_events(world, reason, &message) == 0)
        fail_msg("no event %s", reason);
    return message;
}

static void await_removal(struct world *world, const char *image)
{
    for (int i = 0; i < 6000 && has_image(world, image); i++)
        pass(world, 100);
    assert_false(has_image(world, image));
}

static void run_pod(struct world *world)
{
    (void)create(world, DV_KIND_POD,
                 "{metadata: {name: p, namespace: default}, spec: {nodeName: " NODE
                 ", containers: [{name: c, image: busybox, imagePullPolicy: IfNotPresent, "
                 "command: [sleep]}]}}");
    expect(world, "p", "Running");
}

static void removes_what_nobody_uses(void **state)
{
    struct world *world = *state;
    const char *message;

    run_pod(world);
    begin(world, USED_DIR, 0);
    await_removal(world, "old:1");
    message = await(world, "FreeDiskSpaceFailed");
    assert_non_null(strstr(message, "Failed to garbage collect required amount of images. "
                                    "Attempted to free "));
    /* the other one is "busybox", which is an image of its own here */
    assert_non_null(strstr(message, "bytes, but only found 2097152 bytes eligible to free."));
    assert_int_equal(n_events(world, "ImageGCFailed", &message), 0);
    assert_true(has_image(world, "kept:1"));
    assert_true(has_image(world, "busybox:latest"));
    (void)await(world, "ImageGCFailed"); /* again is told */
    assert_true(has_image(world, "kept:1"));
    assert_true(has_image(world, "busybox:latest"));
}

static void lets_new_images_be(void **state)
{
    struct world *world = *state;

    begin(world, USED_DIR, UINT64_C(120) * 1000 * 1000 * 1000);
    (void)await(world, "FreeDiskSpaceFailed");
    assert_true(has_image(world, "old:1"));
    await_removal(world, "old:1");
}

/* Its image is there, its container is not made yet. */
static void lets_images_of_waiting_pods_be(void **state)
{
    struct world *world = *state;

    world->runtime->faults[DV_CRI_RUN_POD_SANDBOX] =
        (struct cri_fault){.kind = CRI_FAILS, .code = DV_UNKNOWN, .text = "no luck"};
    (void)create(world, DV_KIND_POD,
                 "{metadata: {name: p, namespace: default}, spec: {nodeName: " NODE
                 ", containers: [{name: c, image: 'old:1', command: [sleep]}]}}");
    begin(world, USED_DIR, 0);
    (void)await(world, "ImageGCFailed");
    assert_true(has_image(world, "old:1"));
}

static void says_that_a_disk_has_no_size(void **state)
{
    struct world *world = *state;

    begin(world, SIZELESS_DIR, 0);
    assert_non_null(
        strstr(await(world, "InvalidDiskCapacity"), "invalid capacity 0 on image filesystem"));
    assert_true(has_image(world, "old:1"));
}

static void survives_what_fails(void **state)
{
    static const enum dv_cri_method methods[] = {DV_CRI_LIST_IMAGES, DV_CRI_IMAGE_FS_INFO,
                                                 DV_CRI_REMOVE_IMAGE};
    static const enum cri_fault_kind kinds[] = {CRI_FAILS, CRI_HANGS, CRI_GARBAGE, CRI_EMPTY};
    struct world *world = *state;

    for (size_t i = 0; i < DV_COUNT(methods); i++)
        for (size_t k = 0; k < DV_COUNT(kinds); k++) {
            world->runtime->faults[methods[i]] =
                (struct cri_fault){.kind = kinds[k], .n = 1, .code = DV_UNKNOWN, .text = "no luck"};
            begin(world, USED_DIR, 0);
            await_removal(world, "old:1");
        }
}

/* A call is under way when the node closes. */
static void closes_at_any_time(void **state)
{
    struct world *world = *state;

    world->runtime->faults[DV_CRI_LIST_IMAGES] = (struct cri_fault){.kind = CRI_HANGS};
    begin(world, USED_DIR, 0);
    pass(world, 10000);
    assert_true(world->runtime->n_calls[DV_CRI_LIST_IMAGES] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        runtime_test(removes_what_nobody_uses),
        runtime_test(lets_new_images_be),
        runtime_test(lets_images_of_waiting_pods_be),
        runtime_test(says_that_a_disk_has_no_size),
        runtime_test(survives_what_fails),
        runtime_test(closes_at_any_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
