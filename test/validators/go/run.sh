#!/bin/sh
set -e
exec go run .
