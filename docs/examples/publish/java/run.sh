#!/bin/sh
set -e
cd "$(dirname "$0")"
mvn --batch-mode --quiet compile dependency:build-classpath -Dmdep.outputFile=target/classpath.txt >&2
exec java -cp "target/classes:$(cat target/classpath.txt)" example.Publish
