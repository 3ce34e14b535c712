/* uevent.c - messages of the kernel about devices that come and go. */
#include "base/str.h"
#include "offer/offer.h"

bool dv_uevent_parse(dv_str bytes, struct dv_uevent *event)
{
    struct dv_uevent read = {0};
    dv_str head, line;
    size_t at;

    /* udev's own messages begin with "libudev" and have no "@". */
    if (bytes.n == 0 || !dv_str_split(&bytes, '\0', &head))
        return false;
    at = dv_str_find_char(head, '@');
    if (at == 0 || at == head.n || at + 1 == head.n || head.p[at + 1] != '/')
        return false;
    read.action = dv_str_slice(head, 0, at);
    read.sys_path = dv_str_slice(head, at + 1, head.n);
    while (bytes.p && dv_str_split(&bytes, '\0', &line)) {
        size_t equals = dv_str_find_char(line, '=');
        dv_str key = dv_str_slice(line, 0, equals);
        dv_str value = dv_str_slice(line, equals + 1, line.n);

        if (dv_str_eq(key, DV_STR("SUBSYSTEM")))
            read.subsystem = value;
        else if (dv_str_eq(key, DV_STR("DEVNAME")))
            read.node = value;
    }
    *event = read;
    return true;
}
