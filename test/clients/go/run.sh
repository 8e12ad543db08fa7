#!/bin/sh
set -e
mkdir -p api
export GOFLAGS=-mod=mod
go tool oapi-codegen -package api -generate types,client -o api/api.go openapi.json >&2
go mod tidy >&2
go vet ./... >&2
exec go run .
