#!/bin/sh
set -e
cd "$(dirname "$0")"
# Built at the first run, and again after a change.
if [ ! -f target/classpath.txt ] || [ -n "$(find pom.xml src -newer target/classpath.txt)" ]; then
  mvn --batch-mode --quiet compile dependency:build-classpath -Dmdep.outputFile=target/classpath.txt >&2
fi
exec java -cp "target/classes:$(cat target/classpath.txt)" example.Publish
