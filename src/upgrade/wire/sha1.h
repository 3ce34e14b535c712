/* sha1.h - SHA-1, which WebSocket's handshake is made with. It protects nothing there: it only
 * shows that the server has read the key. */
#ifndef DV_UPGRADE_SHA1_H
#define DV_UPGRADE_SHA1_H

#include <stdint.h>

#include "base/str.h"

#define DV_SHA1_BYTES 20u

void dv_sha1(dv_str text, uint8_t digest[DV_SHA1_BYTES]);

#endif
