package config

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
)

// tokenPrefix lets scanners for secrets find a token that leaked.
const tokenPrefix = "sbx_"

// NewToken returns a bearer token of 256 random bits and its SHA-256, which is
// what a configuration holds.
func NewToken() (token string, hash [32]byte, err error) {
	var secret [32]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return "", hash, fmt.Errorf("random bytes: %w", err)
	}
	token = tokenPrefix + base64.RawURLEncoding.EncodeToString(secret[:])
	return token, sha256.Sum256([]byte(token)), nil
}

// Authenticate returns the principal whose token an Authorization header
// (RFC 6750, section 2.1) carries. It takes the same time whoever it is, and
// whether it is anybody. Without principals nobody is known.
func Authenticate(principals []Principal, header string) (name string, ok bool) {
	scheme, token, _ := strings.Cut(header, " ")
	hash := sha256.Sum256([]byte(token))
	found := -1
	for i, p := range principals {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(hash[:], p.Token[:]), i, found)
	}
	if !strings.EqualFold(scheme, "Bearer") || token == "" || found < 0 {
		return "", false
	}
	return principals[found].Name, true
}
