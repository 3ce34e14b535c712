#include "resource/image.h"

#include <stddef.h>

#include "base/ascii.h"
#include "base/err.h"

#define NAME_BYTES_MAX 255u
#define TAG_BYTES_MAX 128u
#define DIGEST_HEX_MIN 32u
/* A name of as many hexadecimal digits is an image's id, and so not allowed as a name. */
#define ID_BYTES 64u

/* Letters and digits, between them one '.', one or two '_', or any number of '-'. */
static bool is_component(dv_str text)
{
    size_t i = 0;

    while (i < text.n) {
        size_t run = 0;
        char c;

        if (!dv_is_lower_or_digit(text.p[i]))
            return false;
        while (i < text.n && dv_is_lower_or_digit(text.p[i]))
            i++;
        if (i == text.n)
            return true;
        c = text.p[i];
        while (i < text.n && text.p[i] == c) {
            i++;
            run++;
        }
        if (!((c == '.' && run == 1) || (c == '_' && run <= 2) || c == '-'))
            return false;
    }
    return false;
}

static bool is_host_label(dv_str text)
{
    if (text.n == 0 || !dv_is_alphanumeric(text.p[0]) || !dv_is_alphanumeric(text.p[text.n - 1]))
        return false;
    for (size_t i = 0; i < text.n; i++)
        if (!dv_is_alphanumeric(text.p[i]) && text.p[i] != '-')
            return false;
    return true;
}

static bool is_port(dv_str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] < '0' || text.p[i] > '9')
            return false;
    return text.n > 0;
}

static bool is_host(dv_str text)
{
    size_t colon;
    dv_str label;

    if (text.n > 0 && text.p[0] == '[') { /* IPv6 */
        size_t end = dv_str_find_char(text, ']');

        for (size_t i = 1; i < end; i++)
            if (!dv_is_hex(text.p[i]) && text.p[i] != ':')
                return false;
        text = dv_str_slice(text, end + 1, text.n);
        return text.n == 0 || (text.p[0] == ':' && is_port(dv_str_slice(text, 1, text.n)));
    }
    colon = dv_str_find_char(text, ':');
    if (colon < text.n && !is_port(dv_str_slice(text, colon + 1, text.n)))
        return false;
    text = dv_str_slice(text, 0, colon);
    while (dv_str_split(&text, '.', &label))
        if (!is_host_label(label))
            return false;
    return true;
}

/* Whether the first part of a name is a registry, since it does not look like a part of a path. */
static bool is_registry(dv_str part)
{
    if (dv_str_find_char(part, '.') < part.n || dv_str_find_char(part, ':') < part.n ||
        dv_str_eq(part, DV_STR("localhost")))
        return true;
    for (size_t i = 0; i < part.n; i++)
        if (part.p[i] >= 'A' && part.p[i] <= 'Z')
            return true;
    return false;
}

static bool is_id(dv_str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (!dv_is_hex(text.p[i]) || (text.p[i] >= 'A' && text.p[i] <= 'F'))
            return false;
    return text.n == ID_BYTES;
}

static bool is_name(dv_str name)
{
    size_t slash = dv_str_find_char(name, '/');
    dv_str part;

    if (name.n == 0 || name.n > NAME_BYTES_MAX || is_id(name))
        return false;
    if (slash < name.n && is_registry(dv_str_slice(name, 0, slash))) {
        if (!is_host(dv_str_slice(name, 0, slash)))
            return false;
        name = dv_str_slice(name, slash + 1, name.n);
        if (name.n == 0)
            return false;
    }
    while (dv_str_split(&name, '/', &part))
        if (!is_component(part))
            return false;
    return true;
}

static bool is_tag(dv_str tag)
{
    if (tag.n == 0 || tag.n > TAG_BYTES_MAX || tag.p[0] == '.' || tag.p[0] == '-')
        return false;
    for (size_t i = 0; i < tag.n; i++)
        if (!dv_is_alphanumeric(tag.p[i]) && tag.p[i] != '_' && tag.p[i] != '.' && tag.p[i] != '-')
            return false;
    return true;
}

static bool is_digest(dv_str digest)
{
    size_t colon = dv_str_find_char(digest, ':');

    if (colon == 0 || digest.n < colon + 1 + DIGEST_HEX_MIN)
        return false;
    for (size_t i = colon + 1; i < digest.n; i++)
        if (!dv_is_hex(digest.p[i]))
            return false;
    return true;
}

struct image {
    dv_str name; /* with the registry */
    dv_str tag;  /* p is NULL: none */
    bool has_digest;
};

static bool parse(dv_str text, struct image *image)
{
    size_t at = dv_str_find_char(text, '@');
    dv_str name = dv_str_slice(text, 0, at);
    size_t colon;

    *image = (struct image){.name = name, .has_digest = at < text.n};
    if (image->has_digest && !is_digest(dv_str_slice(text, at + 1, text.n)))
        return false;
    for (colon = name.n; colon > 0 && name.p[colon - 1] != ':' && name.p[colon - 1] != '/';)
        colon--;
    if (colon > 0 && name.p[colon - 1] == ':') { /* one that a slash follows is that of a port */
        image->tag = dv_str_slice(name, colon, name.n);
        image->name = dv_str_slice(name, 0, colon - 1);
        if (!is_tag(image->tag))
            return false;
    }
    return is_name(image->name);
}

bool dv_image_is_latest(dv_str image)
{
    struct image parsed;

    return parse(image, &parsed) &&
           (parsed.tag.p ? dv_str_eq(parsed.tag, DV_STR("latest")) : !parsed.has_digest);
}

bool dv_image_is_bare(dv_str image)
{
    struct image parsed;

    return parse(image, &parsed) && !parsed.tag.p && !parsed.has_digest;
}

/* What stands after the registry, up to a colon: what the reference wants in small letters. */
static dv_str remote_part(dv_str image, bool *is_official)
{
    size_t slash = dv_str_find_char(image, '/');
    dv_str first = dv_str_slice(image, 0, slash);
    bool is_hub = slash == image.n || !is_registry(first) ||
                  dv_str_eq(first, DV_STR("docker.io")) ||
                  dv_str_eq(first, DV_STR("index.docker.io"));
    dv_str rest =
        slash < image.n && is_registry(first) ? dv_str_slice(image, slash + 1, image.n) : image;

    rest = dv_str_slice(rest, 0, dv_str_find_char(rest, ':'));
    *is_official = is_hub && dv_str_find_char(rest, '/') == rest.n;
    return rest;
}

bool dv_image_check(dv_str image, struct dv_err *err)
{
    struct image parsed;
    bool is_official;
    dv_str remote;

    if (parse(image, &parsed))
        return true;
    if (is_id(image))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "invalid repository name (%.*s), cannot specify 64-byte hexadecimal strings",
                       DV_FMT(image));
    remote = remote_part(image, &is_official);
    for (size_t i = 0; i < remote.n; i++)
        if (remote.p[i] >= 'A' && remote.p[i] <= 'Z')
            return dv_fail(err, DV_INVALID_ARGUMENT,
                           "invalid reference format: repository name (%s%.*s) must be lowercase",
                           is_official ? "library/" : "", DV_FMT(remote));
    if (parsed.name.n > NAME_BYTES_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "repository name must not be more than %u characters", NAME_BYTES_MAX);
    return dv_fail(err, DV_INVALID_ARGUMENT, "invalid reference format");
}
