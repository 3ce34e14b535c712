/* Looks at made-up trees. */
#include "builtin/machine_scan.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "offer/offer.h"
#include "support/dvtest.h"
#include "support/scratch.h"

#define PATH_BYTES 512
#define XHCI "devices/pci0000:00/0000:00:14.0"

struct tree {
    char root[PATH_BYTES];
    struct dv_arena *arena;
    dv_str dev;
    dv_str sys;
    bool can_make_nodes;
    struct dv_offer_snapshot snapshot;
    struct dv_scan_dirs dirs;
};

static const char *path_of(struct tree *tree, const char *path)
{
    return dv_str_to_c(dv_str_printf(tree->arena, "%s/%s", tree->root, path), tree->arena);
}

static void make_dirs(struct tree *tree, const char *path)
{
    for (const char *at = path; (at = strchr(at, '/')) != NULL; at++) {
        dv_str part = {path, (size_t)(at - path)};

        (void)mkdir(path_of(tree, dv_str_to_c(part, tree->arena)), 0700); /* it may be there */
    }
    (void)mkdir(path_of(tree, path), 0700);
}

static void make_fact(struct tree *tree, const char *path, const char *text)
{
    struct dv_err err;

    assert_ok(dv_file_replace(dv_str_from_c(path_of(tree, path)), dv_str_from_c(text), 0600, &err),
              &err);
}

static void make_link(struct tree *tree, const char *path, const char *target)
{
    assert_int_equal(symlink(target, path_of(tree, path)), 0);
}

static void make_node(struct tree *tree, const char *path, unsigned minor_number)
{
    if (mknod(path_of(tree, path), S_IFCHR | 0600, makedev(1, minor_number)) != 0) {
        assert_int_equal(errno, EPERM);
        tree->can_make_nodes = false;
    }
}

static void set_up(struct tree *tree)
{
    static const char *const dirs[] = {"dev", "sys/bus/usb/devices", "sys/bus/pci/devices",
                                       "sys/dev/char"};

    *tree = (struct tree){.arena = dv_arena_new(), .can_make_nodes = true};
    scratch_make("scan", tree->root, sizeof(tree->root));
    for (size_t i = 0; i < DV_COUNT(dirs); i++)
        make_dirs(tree, dirs[i]);
    tree->dev = dv_str_from_c(path_of(tree, "dev"));
    tree->sys = dv_str_from_c(path_of(tree, "sys"));
}

static void look(struct tree *tree)
{
    tree->snapshot = (struct dv_offer_snapshot){0};
    tree->dirs = (struct dv_scan_dirs){0};
    dv_machine_scan(tree->dev, tree->sys, tree->arena, &tree->snapshot, &tree->dirs);
}

static void tear_down(struct tree *tree)
{
    scratch_remove(tree->root);
    dv_arena_free(tree->arena);
}

static void a_node_is_placed_in_its_usb_and_pci_device(void **state)
{
    struct tree tree;
    const struct dv_offer_node *node;

    (void)state;
    set_up(&tree);
    make_dirs(&tree, "sys/" XHCI "/usb1/1-4/1-4:1.0/ttyUSB0/tty/ttyUSB0");
    make_fact(&tree, "sys/" XHCI "/vendor", "0x8086\n");
    make_fact(&tree, "sys/" XHCI "/device", "0xa36d\n");
    make_fact(&tree, "sys/" XHCI "/class", "0x0c0330\n");
    make_fact(&tree, "sys/" XHCI "/numa_node", "1\n");
    make_fact(&tree, "sys/" XHCI "/usb1/1-4/idVendor", "0403\n");
    make_fact(&tree, "sys/" XHCI "/usb1/1-4/idProduct", "6001\n");
    make_fact(&tree, "sys/" XHCI "/usb1/1-4/serial", "A5\033[2J\n");
    make_fact(&tree, "sys/" XHCI "/usb1/1-4/product",
              "a name that somebody has made longer than any attribute in the API may ever be\n");
    make_link(&tree, "sys/bus/pci/devices/0000:00:14.0", "../../../" XHCI);
    make_link(&tree, "sys/bus/usb/devices/1-4", "../../../" XHCI "/usb1/1-4");
    make_link(&tree, "sys/bus/usb/devices/1-4:1.0", "../../../" XHCI "/usb1/1-4/1-4:1.0");
    make_link(&tree, "sys/dev/char/1:3", "../../" XHCI "/usb1/1-4/1-4:1.0/ttyUSB0/tty/ttyUSB0");
    make_node(&tree, "dev/ttyUSB0", 3);
    make_dirs(&tree, "dev/serial/by-id");
    make_link(&tree, "dev/serial/by-id/usb-x", "../../ttyUSB0");
    look(&tree);
    assert_int_equal(tree.snapshot.n_parts, 2);
    assert_int_equal(tree.dirs.n, 3);
    if (tree.can_make_nodes) {
        assert_int_equal(tree.snapshot.n_nodes, 1);
        node = &tree.snapshot.nodes[0];
        assert_str(node->path, "/dev/ttyUSB0");
        assert_non_null(node->usb);
        assert_str(node->usb->vendor, "0403");
        assert_str(node->usb->path, XHCI "/usb1/1-4");
        assert_true(dv_str_find_char(node->usb->serial, '\033') == node->usb->serial.n);
        assert_true(node->usb->product_name.n <= 64);
        assert_non_null(node->pci);
        assert_str(node->pci->vendor, "8086");
        assert_str(node->pci->class, "0c0330");
        assert_int_equal(node->pci->numa_node, 1);
        assert_int_equal(node->n_links, 1);
        assert_str(node->links[0], "/dev/serial/by-id/usb-x");
    }
    tear_down(&tree);
}

static void links_that_lead_out_or_nowhere_are_no_names(void **state)
{
    struct tree tree;

    (void)state;
    set_up(&tree);
    make_node(&tree, "dev/real", 3);
    make_link(&tree, "dev/absolute", "/dev/null");
    make_link(&tree, "dev/relative", "../../../../../dev/null");
    make_link(&tree, "dev/beside", "../devices");
    make_link(&tree, "dev/itself", "itself");
    make_link(&tree, "dev/nothing", "gone");
    make_link(&tree, "dev/first", "second");
    make_link(&tree, "dev/second", "real");
    make_link(&tree, "dev/folder", ".");
    look(&tree);
    if (tree.can_make_nodes) {
        assert_int_equal(tree.snapshot.n_nodes, 1);
        assert_int_equal(tree.snapshot.nodes[0].n_links, 2);
        assert_str(tree.snapshot.nodes[0].links[0], "/dev/first");
        assert_str(tree.snapshot.nodes[0].links[1], "/dev/second");
    }
    tear_down(&tree);
}

static void trees_that_are_not_there_have_nothing(void **state)
{
    struct tree tree;

    (void)state;
    set_up(&tree);
    tree.dev = DV_STR("/nowhere/dev");
    tree.sys = DV_STR("/nowhere/sys");
    look(&tree);
    assert_int_equal(tree.snapshot.n_nodes + tree.snapshot.n_parts + tree.dirs.n, 0);
    tear_down(&tree);
}

static void what_is_no_device_is_passed_over(void **state)
{
    struct tree tree;

    (void)state;
    set_up(&tree);
    make_fact(&tree, "dev/file", "x");
    make_dirs(&tree, "dev/char");
    make_node(&tree, "dev/char/x", 3);
    make_dirs(&tree, "dev/1/2/3/4/5/6/7");
    make_node(&tree, "dev/1/2/3/4/5/6/7/deep", 3);
    assert_int_equal(mkfifo(path_of(&tree, "dev/pipe"), 0600), 0);
    look(&tree);
    assert_int_equal(tree.snapshot.n_nodes, 0);
    tear_down(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_is_placed_in_its_usb_and_pci_device),
        cmocka_unit_test(links_that_lead_out_or_nowhere_are_no_names),
        cmocka_unit_test(trees_that_are_not_there_have_nothing),
        cmocka_unit_test(what_is_no_device_is_passed_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
