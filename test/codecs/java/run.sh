#!/bin/sh
set -e
mvn --batch-mode --quiet compile dependency:build-classpath -Dmdep.outputFile=classpath.txt >&2
exec java -cp "target/classes:$(cat classpath.txt)" example.Produce
