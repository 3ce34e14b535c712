/* offer_name.c - what a device is called: by what stays with it (its serial number, its slot), and
 * by the number that the kernel gave it only when there is nothing else. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/ascii.h"
#include "base/map.h"
#include "base/num.h"
#include "offer/offer.h"
#include "offer/offer_find.h"

#define LABEL_BYTES_MAX 63u
/* A dash and eight digits stand for what does not fit. */
#define CUT_BYTES (LABEL_BYTES_MAX - 9u)

dv_str dv_offer_last_part(dv_str path)
{
    size_t at = path.n;

    while (at > 0 && path.p[at - 1] != '/')
        at--;
    return dv_str_slice(path, at, path.n);
}

/* ---- what stays ---- */

/* A device without a serial number is known by its port. */
static dv_str usb_key(const struct dv_offer_part *usb, struct dv_arena *arena)
{
    return dv_str_printf(arena, "usb-%.*s-%.*s-%s%.*s", DV_FMT(usb->vendor), DV_FMT(usb->product),
                         usb->serial.n > 0 ? "" : "at-",
                         DV_FMT(usb->serial.n > 0 ? usb->serial : dv_offer_last_part(usb->path)));
}

/* "-if02" of ".../1-4:1.2/ttyUSB0/tty/ttyUSB0": which of the device's functions it is. */
static dv_str interface_of(dv_str sys_path, dv_str usb_path, struct dv_arena *arena)
{
    dv_str rest = dv_str_slice(sys_path, usb_path.n + 1, sys_path.n);
    dv_str part = dv_str_slice(rest, 0, dv_str_find_char(rest, '/'));
    size_t colon = dv_str_find_char(part, ':');
    size_t dot = colon + dv_str_find_char(dv_str_slice(part, colon, part.n), '.');
    uint32_t number;

    if (colon == part.n || !dv_str_to_u32(dv_str_slice(part, dot + 1, part.n), &number))
        return DV_STR("");
    return dv_str_printf(arena, "-if%02u", number);
}

/* "drm" of ".../0000:3b:00.0/drm/card0": the kernel's class of the node, without numbers. */
static dv_str class_of(dv_str sys_path)
{
    dv_str last = dv_offer_last_part(sys_path);
    dv_str class = dv_offer_last_part(
        dv_str_slice(sys_path, 0, sys_path.n - dv_size_min(last.n + 1, sys_path.n)));

    while (class.n > 0 && dv_is_digit(class.p[class.n - 1]))
        class.n--;
    return class;
}

void dv_offer_describe(struct dv_offer_device *device, bool is_whole, struct dv_arena *arena)
{
    const struct dv_offer_node *node = device->n_nodes > 0 ? device->nodes[0] : NULL;

    if (device->cdi) {
        device->key = device->cdi->device;
        device->place = device->cdi->name;
    } else if (device->usb) {
        device->key = usb_key(device->usb, arena);
        if (!is_whole)
            device->key = dv_str_concat(
                (dv_str[]){device->key, interface_of(node->sys_path, device->usb->path, arena)}, 2,
                arena);
        device->place = dv_offer_last_part(device->usb->path);
    } else if (device->pci) {
        dv_str address = dv_offer_last_part(device->pci->path);
        dv_str class = is_whole ? DV_STR("") : class_of(node->sys_path);

        device->key = dv_str_printf(arena, "pci-%.*s%s%.*s", DV_FMT(address),
                                    class.n > 0 ? "-" : "", DV_FMT(class));
        device->place = node->path;
    } else {
        device->key = dv_str_slice(node->path, sizeof("/dev/") - 1, node->path.n);
        device->place = node->path;
    }
}

/* ---- labels ---- */

/* Makes a DNS label of the text: what may not be in one becomes a dash, and what is too long is cut
 * and told apart by a number computed from the whole. */
static dv_str label_of(dv_str text, struct dv_arena *arena)
{
    char *at = dv_arena_alloc_raw(arena, text.n + LABEL_BYTES_MAX + 1, 1);
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++) {
        char c = dv_to_lower(text.p[i]);

        if (dv_is_lower_or_digit(c))
            at[n++] = c;
        else if (n > 0 && at[n - 1] != '-')
            at[n++] = '-';
    }
    while (n > 0 && at[n - 1] == '-')
        n--;
    if (n <= LABEL_BYTES_MAX)
        return (dv_str){at, n};
    return dv_str_printf(arena, "%.*s-%08x", (int)CUT_BYTES, at, dv_fnv1a(text));
}

static dv_str first_name(const struct dv_offer_device *device, struct dv_arena *arena)
{
    if (dv_str_eq(device->key, device->offer->name))
        return device->offer->name;
    return label_of(
        dv_str_concat((dv_str[]){device->offer->name, DV_STR("-"), device->key}, 3, arena), arena);
}

/* ---- several alike ---- */

struct named {
    struct dv_offer_device *device;
    dv_str name; /* that it would have if it were the only one of its key */
    dv_str kept; /* that it had before, at this place; empty: it is new */
};

static int by_place(const void *a, const void *b)
{
    const struct dv_offer_device *left = ((const struct named *)a)->device;
    const struct dv_offer_device *right = ((const struct named *)b)->device;
    int order = dv_str_cmp(((const struct named *)a)->name, ((const struct named *)b)->name);

    if (order == 0)
        order = dv_str_natural_cmp(left->place, right->place);
    if (order == 0 && left->n_nodes > 0 && right->n_nodes > 0)
        order = dv_str_natural_cmp(left->nodes[0]->path, right->nodes[0]->path);
    return order;
}

static dv_str identity_of(const struct dv_offer_device *device, struct dv_arena *arena)
{
    return dv_str_concat(
        (dv_str[]){device->offer->name, DV_STR("\n"), device->key, DV_STR("\n"), device->place}, 5,
        arena);
}

/* Finds a name that nobody has: with the place behind it, then with a number. */
static dv_str other_name(const struct dv_map *taken, const struct named *one,
                         struct dv_arena *arena)
{
    dv_str base = label_of(
        dv_str_printf(arena, "%.*s-at-%.*s", DV_FMT(one->name), DV_FMT(one->device->place)), arena);
    dv_str name = base;

    for (unsigned i = 2; dv_map_get(taken, name); i++)
        name = label_of(dv_str_printf(arena, "%.*s-%u", DV_FMT(base), i), arena);
    return name;
}

static void take(struct dv_map *taken, struct named *one, dv_str name)
{
    if (name.n == 0 || one->device->name.n > 0 || dv_map_get(taken, name))
        return;
    one->device->name = name;
    dv_map_set(taken, name, one->device);
}

void dv_offer_name_all(struct dv_offer_device *devices, size_t n_devices,
                       const struct dv_offer_list *before, struct dv_arena *arena)
{
    struct named *all = DV_NEW_ARRAY(arena, struct named, n_devices);
    struct dv_map taken, known;

    dv_map_init(&taken);
    dv_map_init(&known);
    for (size_t i = 0; before && i < before->n_devices; i++)
        dv_map_set(&known, identity_of(&before->devices[i], arena), &before->devices[i]);
    for (size_t i = 0; i < n_devices; i++) {
        const struct dv_offer_device *old = dv_map_get(&known, identity_of(&devices[i], arena));

        all[i] = (struct named){&devices[i], first_name(&devices[i], arena),
                                old ? dv_str_copy(old->name, arena) : DV_STR("")};
    }
    if (n_devices > 0)
        qsort(all, n_devices, sizeof(all[0]), by_place);
    for (size_t i = 0; i < n_devices; i++)
        take(&taken, &all[i], all[i].kept);
    for (size_t i = 0; i < n_devices; i++)
        take(&taken, &all[i], all[i].name);
    for (size_t i = 0; i < n_devices; i++)
        if (all[i].device->name.n == 0)
            take(&taken, &all[i], other_name(&taken, &all[i], arena));
    dv_map_fini(&taken);
    dv_map_fini(&known);
}
