/* offer_words.c - reads the words that an offer is made of. */
#include "offer/offer_words.h"

#include "base/arena.h"
#include "base/ascii.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/name.h"
#include "base/num.h"
#include "base/vec.h"
#include "offer/offer.h"

#define SHARES_MAX 1000000u
#define MODE_MAX 0777u

/* ---- selectors ---- */

static bool is_hex(dv_str text, size_t n)
{
    for (size_t i = 0; i < text.n; i++)
        if (!dv_is_hex(text.p[i]))
            return false;
    return text.n == n;
}

static dv_str lower(dv_str text, struct dv_arena *arena)
{
    char *at = dv_arena_alloc_raw(arena, text.n + 1, 1);

    for (size_t i = 0; i < text.n; i++)
        at[i] = dv_to_lower(text.p[i]);
    return (dv_str){at, text.n};
}

/* Reads an id of a vendor or a product; a star, or nothing, is any. */
static bool read_id(dv_str text, struct dv_arena *arena, dv_str *id)
{
    if (text.n == 0 || dv_str_eq(text, DV_STR("*")))
        return true;
    *id = lower(text, arena);
    return is_hex(text, 4);
}

static bool read_usb(struct dv_offer_match *match, dv_str rest, struct dv_arena *arena)
{
    dv_str vendor, product = {0};

    if (!dv_str_split(&rest, ':', &vendor) || vendor.n == 0)
        return false;
    if (rest.p)
        (void)dv_str_split(&rest, ':', &product); /* false: there is no product */
    match->pattern = rest;                        /* a serial number may have colons */
    return read_id(vendor, arena, &match->vendor) && read_id(product, arena, &match->product) &&
           (match->vendor.n > 0 || match->product.n > 0 || match->pattern.n > 0);
}

/* "0000:3b:00.0", or "3b:00.0" in the first domain. */
static bool read_address(struct dv_offer_match *match, dv_str text, struct dv_arena *arena)
{
    const dv_str domain = DV_STR("0000:");
    dv_str whole =
        text.n == sizeof("3b:00.0") - 1 ? dv_str_concat((dv_str[]){domain, text}, 2, arena) : text;

    match->address = lower(whole, arena);
    return whole.n == sizeof("0000:3b:00.0") - 1 && is_hex(dv_str_slice(whole, 0, 4), 4) &&
           whole.p[4] == ':' && is_hex(dv_str_slice(whole, 5, 7), 2) && whole.p[7] == ':' &&
           is_hex(dv_str_slice(whole, 8, 10), 2) && whole.p[10] == '.' && whole.p[11] >= '0' &&
           whole.p[11] <= '7';
}

static bool read_pci(struct dv_offer_match *match, dv_str rest, struct dv_arena *arena)
{
    const dv_str class = DV_STR("class:");
    dv_str vendor, product = {0};

    if (dv_str_starts_with(rest, class)) {
        match->class = lower(dv_str_slice(rest, class.n, rest.n), arena);
        return match->class.n >= 2 && match->class.n <= 6 && match->class.n % 2 == 0 &&
               is_hex(match->class, match->class.n);
    }
    if (dv_str_find_char(rest, '.') < rest.n)
        return read_address(match, rest, arena);
    if (!dv_str_split(&rest, ':', &vendor) || vendor.n == 0)
        return false;
    if (rest.p)
        (void)dv_str_split(&rest, ':', &product);
    return rest.n == 0 && read_id(vendor, arena, &match->vendor) &&
           read_id(product, arena, &match->product) &&
           (match->vendor.n > 0 || match->product.n > 0);
}

static bool read_cdi(struct dv_offer_match *match, dv_str rest)
{
    size_t equals = dv_str_find_char(rest, '=');
    struct dv_cdi_name name;
    struct dv_err bad;
    char text[DV_CDI_VENDOR_BYTES_MAX + DV_CDI_CLASS_BYTES_MAX + 4];
    struct dv_buf buf;
    bool is_good;

    match->cdi_kind = dv_str_slice(rest, 0, equals);
    match->pattern = dv_str_slice(rest, equals + 1, rest.n);
    if (match->cdi_kind.n + 3 > sizeof(text) || (equals < rest.n && match->pattern.n == 0))
        return false;
    dv_buf_init(&buf, sizeof(text));
    dv_buf_add(&buf, match->cdi_kind);
    dv_buf_add_c(&buf, "=0"); /* a kind is what may stand before a device's name */
    is_good = dv_cdi_name_parse(dv_buf_str(&buf), &name, &bad);
    dv_buf_fini(&buf);
    return is_good;
}

/* Whether the path stays below /dev and names something there: a pattern that begins with a star
 * would offer disks and the memory of the machine. */
static bool check_path(dv_str path, struct dv_err *err)
{
    const dv_str dev = DV_STR("/dev/");
    dv_str rest = dv_str_slice(path, dev.n, path.n);
    dv_str part;

    if (!dv_str_starts_with(path, dev) || rest.n == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\" is no path of a device below /dev/",
                       DV_FMT(path));
    if (!dv_is_alphanumeric(rest.p[0]))
        return dv_fail(
            err, DV_INVALID_ARGUMENT,
            "\"%.*s\" is too wide: a pattern begins with a letter or a digit behind /dev/",
            DV_FMT(path));
    while (rest.p && dv_str_split(&rest, '/', &part))
        if (part.n == 0 || dv_str_eq(part, DV_STR(".")) || dv_str_eq(part, DV_STR("..")))
            return dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\" has an empty part, \".\" or \"..\"",
                           DV_FMT(path));
    for (size_t i = 0; i < path.n; i++) {
        size_t end =
            path.p[i] == '[' ? i + 1 + dv_str_find_char(dv_str_slice(path, i + 1, path.n), ']') : i;

        if (end >= path.n || dv_str_find_char(dv_str_slice(path, i, end), '/') < end - i)
            return dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\" has a \"[\" without its \"]\"",
                           DV_FMT(path));
        i = end;
    }
    return true;
}

static const struct {
    dv_str prefix;
    enum dv_offer_match_kind kind;
    const char *form;
} kinds[] = {
    {DV_STR_INIT("/"),    DV_OFFER_PATH, "/dev/PATTERN"                                         },
    {DV_STR_INIT("usb:"), DV_OFFER_USB,  "usb:VENDOR[:PRODUCT[:SERIAL]], ids of four hex digits"},
    {DV_STR_INIT("pci:"), DV_OFFER_PCI,
     "pci:VENDOR[:DEVICE], pci:0000:3b:00.0 or pci:class:0302, in hex digits"                   },
    {DV_STR_INIT("cdi:"), DV_OFFER_CDI,  "cdi:VENDOR/CLASS[=NAME], as nvidia.com/gpu"           },
};

bool dv_offer_is_match(dv_str word)
{
    for (size_t i = 0; i < DV_COUNT(kinds); i++)
        if (dv_str_starts_with(word, kinds[i].prefix))
            return true;
    return false;
}

bool dv_offer_add_match(struct dv_offer *offer, dv_str word, struct dv_arena *arena,
                        struct dv_err *err)
{
    struct dv_offer_match match = {.text = dv_str_copy(word, arena)};
    struct {
        struct dv_offer_match *v;
        size_t n;
        size_t size;
    } matches = {offer->matches, offer->n_matches, offer->n_matches};
    bool is_good = false;
    size_t i = 0;
    dv_str rest;

    if (offer->n_matches == DV_OFFER_MATCHES_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT, "more than %u selectors", DV_OFFER_MATCHES_MAX);
    while (i < DV_COUNT(kinds) && !dv_str_starts_with(word, kinds[i].prefix))
        i++;
    if (i == DV_COUNT(kinds))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "\"%.*s\" selects no devices; there are /dev/PATTERN, usb:, pci: and cdi:",
                       DV_FMT(word));
    match.kind = kinds[i].kind;
    rest = dv_str_slice(match.text, kinds[i].prefix.n, match.text.n);
    switch (match.kind) {
    case DV_OFFER_PATH:
        match.pattern = match.text;
        if (!check_path(match.text, err))
            return false;
        is_good = true;
        break;
    case DV_OFFER_USB:
        is_good = read_usb(&match, rest, arena);
        break;
    case DV_OFFER_PCI:
        is_good = read_pci(&match, rest, arena);
        break;
    case DV_OFFER_CDI:
        is_good = read_cdi(&match, rest);
        break;
    }
    if (!is_good)
        return dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\" is not %s", DV_FMT(word), kinds[i].form);
    *dv_vec_add_in(&matches, arena) = match;
    offer->matches = matches.v;
    offer->n_matches = matches.n;
    return true;
}

/* ---- settings ---- */

static bool set_shared(struct dv_offer *offer, dv_str value)
{
    if (dv_str_eq(value, DV_STR("false")) || dv_str_eq(value, DV_STR("1")))
        return true; /* one at a time is not shared */
    offer->is_shared = true;
    return dv_str_eq(value, DV_STR("true")) ||
           (dv_str_to_u32(value, &offer->n_shares) && offer->n_shares > 0 &&
            offer->n_shares <= SHARES_MAX);
}

static const struct {
    dv_str word;
    enum dv_offer_group group;
} groups[] = {
    {DV_STR_INIT("node"), DV_OFFER_GROUP_NODE},
    {DV_STR_INIT("usb"),  DV_OFFER_GROUP_USB },
    {DV_STR_INIT("pci"),  DV_OFFER_GROUP_PCI },
};

static bool set_group(struct dv_offer *offer, dv_str value)
{
    for (size_t i = 0; i < DV_COUNT(groups); i++)
        if (dv_str_eq(groups[i].word, value))
            offer->group = groups[i].group;
    return offer->group != DV_OFFER_GROUP_AUTO;
}

static bool set_access(struct dv_offer *offer, dv_str value)
{
    offer->permissions = value;
    return dv_str_eq(value, DV_STR("r")) || dv_str_eq(value, DV_STR("w")) ||
           dv_str_eq(value, DV_STR("rw")) || dv_str_eq(value, DV_STR("rwm"));
}

static bool set_as(struct dv_offer *offer, dv_str value)
{
    struct dv_err bad;

    offer->as = value;
    for (size_t i = 0; i < value.n; i++)
        if (dv_str_find_char(DV_STR("*?[]"), value.p[i]) < 4)
            return false;
    return check_path(value, &bad);
}

static bool set_env(struct dv_offer *offer, dv_str value)
{
    offer->env = value;
    for (size_t i = 0; i < value.n; i++)
        if (!dv_is_alphanumeric(value.p[i]) && value.p[i] != '_')
            return false;
    return value.n > 0 && value.n <= 64 && !dv_is_digit(value.p[0]);
}

static bool set_mode(struct dv_offer *offer, dv_str value)
{
    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] < '0' || value.p[i] > '7' || offer->mode.value > MODE_MAX)
            return false;
        offer->mode.value = offer->mode.value * 8 + (uint32_t)(value.p[i] - '0');
    }
    offer->mode.is_set = true;
    return value.n > 0 && offer->mode.value <= MODE_MAX;
}

static bool set_owner(struct dv_offer *offer, dv_str value)
{
    size_t colon = dv_str_find_char(value, ':');

    offer->uid.is_set = true;
    offer->gid.is_set = colon < value.n;
    return dv_str_to_u32(dv_str_slice(value, 0, colon), &offer->uid.value) &&
           offer->uid.value < UINT32_MAX &&
           (colon == value.n ||
            (dv_str_to_u32(dv_str_slice(value, colon + 1, value.n), &offer->gid.value) &&
             offer->gid.value < UINT32_MAX));
}

/* The form of a qualified name with its prefix, as the API wants it for an extended resource. */
static bool set_resource(struct dv_offer *offer, dv_str value)
{
    size_t slash = dv_str_find_char(value, '/');
    dv_str domain = dv_str_slice(value, 0, slash);

    offer->resource = value;
    return slash < value.n && dv_is_label_name(value) &&
           !dv_str_eq(domain, DV_STR("kubernetes.io")) &&
           !dv_str_ends_with(domain, DV_STR(".kubernetes.io")) &&
           !dv_str_starts_with(value, DV_STR("requests."));
}

static bool set_class(struct dv_offer *offer, dv_str value)
{
    offer->class_name = value;
    return dv_is_dns_subdomain(value);
}

static const struct setting {
    dv_str key;
    bool (*set)(struct dv_offer *offer, dv_str value);
    const char *form;
} settings[] = {
    {DV_STR_INIT("shared"),   set_shared,   "true, false, or how many may have a device at once"},
    {DV_STR_INIT("group"),    set_group,    "node, usb or pci"                                  },
    {DV_STR_INIT("access"),   set_access,   "r, w or rw"                                        },
    {DV_STR_INIT("as"),       set_as,       "a path below /dev/ in the container"               },
    {DV_STR_INIT("env"),      set_env,      "the name of a variable"                            },
    {DV_STR_INIT("mode"),     set_mode,     "permission bits in octal digits, as 0660"          },
    {DV_STR_INIT("owner"),    set_owner,    "UID or UID:GID, in numbers"                        },
    {DV_STR_INIT("resource"), set_resource,
     "the name of an extended resource, as example.com/serial"                                  },
    {DV_STR_INIT("class"),    set_class,    "the name of a DeviceClass: a DNS subdomain"        },
};

bool dv_offer_set(struct dv_offer *offer, dv_str key, dv_str value, struct dv_arena *arena,
                  struct dv_err *err)
{
    for (size_t i = 0; i < DV_COUNT(settings); i++) {
        if (!dv_str_eq(settings[i].key, key))
            continue;
        return settings[i].set(offer, dv_str_copy(value, arena)) ||
               dv_fail(err, DV_INVALID_ARGUMENT, "%.*s: \"%.*s\" is not %s", DV_FMT(key),
                       DV_FMT(value), settings[i].form);
    }
    return dv_fail(err, DV_INVALID_ARGUMENT,
                   "no setting \"%.*s\"; there are shared, group, access, as, env, mode, owner, "
                   "resource and class",
                   DV_FMT(key));
}

/* ---- the whole ---- */

static dv_str env_of(dv_str name, struct dv_arena *arena)
{
    const dv_str prefix = DV_STR("DAVIT_");
    char *at = dv_arena_alloc_raw(arena, prefix.n + name.n, 1);
    char *to = at;

    (void)dv_str_put(prefix, &to);
    for (size_t i = 0; i < name.n; i++)
        to[i] = (char)(name.p[i] == '-'         ? '_'
                       : dv_is_lower(name.p[i]) ? name.p[i] - 'a' + 'A'
                                                : name.p[i]);
    return (dv_str){at, prefix.n + name.n};
}

bool dv_offer_finish(const struct dv_offers *offers, struct dv_offer *offer, struct dv_arena *arena,
                     struct dv_err *err)
{
    if (!dv_is_dns_label(offer->name) || offer->name.n > DV_OFFER_NAME_BYTES_MAX)
        return dv_fail(
            err, DV_INVALID_ARGUMENT,
            "\"%.*s\" is no name of an offer: small letters, digits and dashes inside, at "
            "most %u",
            DV_FMT(offer->name), DV_OFFER_NAME_BYTES_MAX);
    if (offer->n_matches == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "%.*s: selects no devices; there are /dev/PATTERN, usb:, pci: and cdi:",
                       DV_FMT(offer->name));
    if (offers->n == DV_OFFERS_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT, "more than %u offers", DV_OFFERS_MAX);
    if (offer->class_name.n == 0)
        offer->class_name = offer->name;
    if (offer->resource.n == 0)
        offer->resource =
            dv_str_concat((dv_str[]){DV_STR(DV_OFFER_RESOURCE_PREFIX), offer->name}, 2, arena);
    if (offer->permissions.n == 0)
        offer->permissions = DV_STR("rw");
    if (offer->env.n == 0)
        offer->env = env_of(offer->name, arena);
    for (size_t i = 0; i < offers->n; i++) {
        const struct dv_offer *other = &offers->v[i];
        bool has_name = dv_str_eq(other->name, offer->name);

        if (has_name || dv_str_eq(other->class_name, offer->class_name) ||
            dv_str_eq(other->resource, offer->resource))
            return dv_fail(err, DV_INVALID_ARGUMENT, "%.*s: %.*s (%.*s) has its %s already",
                           DV_FMT(offer->name), DV_FMT(other->name), DV_FMT(other->origin),
                           has_name                                          ? "name"
                           : dv_str_eq(other->class_name, offer->class_name) ? "class"
                                                                             : "resource");
    }
    return true;
}
