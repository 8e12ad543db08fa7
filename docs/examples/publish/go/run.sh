#!/bin/sh
exec go run .
