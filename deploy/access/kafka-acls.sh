#!/bin/sh
# Written by `npm run contract` from schemas/access.ts: the ACLs of each identity.
# Needs kafka-acls.sh on the PATH, KAFKA_BROKERS, and ADMIN_CONFIG: a file with the credentials of an administrator.
# The names of the users are arguments of `allow`: change them to yours. Lines after # are for the cases that they name.
set -eu
: "${KAFKA_BROKERS:?}" "${ADMIN_CONFIG:?}"
: "${KAFKA_EVENTS_TOPIC:=commission.events}" "${KAFKA_API_KEYS_TOPIC:=commission.api-keys}"
: "${KAFKA_GROUP_ID:=commission-projector}" "${TRANSACTIONAL_ID:=commission-publisher}"
: "${AUDIT_TOPIC:=commission.audit}"

allow() {
  user=$1
  shift
  kafka-acls.sh --bootstrap-server "$KAFKA_BROKERS" --command-config "$ADMIN_CONFIG" --add --allow-principal "User:$user" "$@"
}

# projector: npm run start:projector
allow commission-projector --topic "${KAFKA_EVENTS_TOPIC}" --operation Read --operation DescribeConfigs
allow commission-projector --topic "${KAFKA_API_KEYS_TOPIC}" --operation Read --operation DescribeConfigs
allow commission-projector --group "${KAFKA_GROUP_ID}-" --resource-pattern-type prefixed --operation Read

# api: npm run start:api
# allow commission-api --topic "${AUDIT_TOPIC}" --operation Write --operation DescribeConfigs  # AUDIT_LOG=kafka:TOPIC

# topics: npx commission topics
allow commission-topics --topic "${KAFKA_EVENTS_TOPIC}" --operation Create --operation Describe --operation DescribeConfigs
allow commission-topics --topic "${KAFKA_API_KEYS_TOPIC}" --operation Create --operation Describe --operation DescribeConfigs

# keys: npx commission keys create, rotate, revoke and list
allow commission-keys --topic "${KAFKA_API_KEYS_TOPIC}" --operation Write

# parked: npx commission parked
allow commission-parked --topic "${KAFKA_EVENTS_TOPIC}" --operation Write  # publish-again
allow commission-parked --topic "${KAFKA_API_KEYS_TOPIC}" --operation Write  # publish-again

# projection: npx commission projection: rebuild, replay, status, adopt, rewind, drop and the others; npx commission subjects
allow commission-projection --topic "${KAFKA_EVENTS_TOPIC}" --operation Read --operation DescribeConfigs
allow commission-projection --topic "${KAFKA_API_KEYS_TOPIC}" --operation Describe  # upgrade-keys
allow commission-projection --topic "${KAFKA_API_KEYS_TOPIC}" --operation Read --operation DescribeConfigs  # adopt, rewind
allow commission-projection --group "${KAFKA_GROUP_ID}-" --resource-pattern-type prefixed --operation Read --operation Delete

# grow: npx commission grow
allow commission-grow --topic "${KAFKA_EVENTS_TOPIC}" --operation Read --operation DescribeConfigs
allow commission-grow --topic "${KAFKA_EVENTS_TOPIC}-" --resource-pattern-type prefixed --operation Create --operation Read --operation Write --operation DescribeConfigs --operation AlterConfigs
allow commission-grow --group "${KAFKA_GROUP_ID}-" --resource-pattern-type prefixed --operation Read
allow commission-grow --transactional-id "commission-grow-" --resource-pattern-type prefixed --operation Write --operation Describe

# archive: npx commission archive
allow commission-archive --topic "${KAFKA_EVENTS_TOPIC}" --operation Read
allow commission-archive --topic "${KAFKA_API_KEYS_TOPIC}" --operation Read

# restore: npx commission restore
allow commission-restore --topic "${KAFKA_EVENTS_TOPIC}" --operation Read --operation Write --operation DescribeConfigs --operation AlterConfigs
allow commission-restore --topic "${KAFKA_API_KEYS_TOPIC}" --operation Read --operation Write --operation DescribeConfigs --operation AlterConfigs
allow commission-restore --transactional-id "commission-restore-" --resource-pattern-type prefixed --operation Write --operation Describe

# events-publisher: the calculation system
allow commission-events-publisher --topic "${KAFKA_EVENTS_TOPIC}" --operation Write
# allow commission-events-publisher --transactional-id "${TRANSACTIONAL_ID}" --operation Write --operation Describe  # a publisher with transactions

# keys-publisher: another system that makes API keys
allow commission-keys-publisher --topic "${KAFKA_API_KEYS_TOPIC}" --operation Write
