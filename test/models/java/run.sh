#!/bin/sh
set -e
# A folder for each schema: its classes come into a package of their own. Two payouts have a LineItem.
for schema in "$CONTRACT"/events/*.json; do
  name=$(basename "$schema" .json | sed 's/^commission\.//; s/\./_/g')
  mkdir -p "schemas/$name"
  cp "$schema" "schemas/$name/"
done
mvn --batch-mode --quiet compile dependency:build-classpath -Dmdep.outputFile=classpath.txt >&2
exec java -cp "target/classes:$(cat classpath.txt)" example.Publish
