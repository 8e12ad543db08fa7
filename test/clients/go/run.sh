#!/bin/sh
set -e
mkdir -p api
go tool oapi-codegen -package api -generate types,client -o api/api.go openapi.json >&2
go vet ./... >&2
exec go run .
