// Lists of contacts.
#pragma once

// The largest number of contacts in a residue's list. C-alphas of proteins have at most about 20
// others within 8 A.
constexpr unsigned CONTACTS_MAX = 32;
