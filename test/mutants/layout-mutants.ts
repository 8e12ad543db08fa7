// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings hold source code
/** Bugs in the layout of generations, that lose a document in another shard or mix kinds: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

export const layoutMutants: readonly Mutant[] = [
  {
    name: 'a document is written without the routing with which it is looked for',
    inside: 'actionOf',
    file: 'core/store/documents/documents.ts',
    find: '  const routed = routing === undefined ? \'\' : `"routing":"${routing}",`\n',
    replace: "  const routed = routing === undefined ? '' : ''\n",
  },
  {
    name: 'the projector reads a document without its routing',
    inside: 'lineOf',
    file: 'core/store/elasticsearch/primary-reads.ts',
    find: 'update: { _index, _id, routing, _source: fields }',
    replace: 'update: { _index, _id, routing: routing && undefined, _source: fields }',
  },
  {
    name: 'the API reads a document without its routing',
    inside: 'multiGetBody',
    find: 'docs: names.map(({ _index, _id, routing, form }) => ({ _index, _id, routing,',
    replace: 'docs: names.map(({ _index, _id, form }) => ({ _index, _id,',
  },
  {
    name: 'a document of a routed generation is routed by its id',
    inside: 'routedLayout',
    find: '  const routingOf = (kind: IndexKind, id: string): string | undefined => (isRouted(kind) ? orgIn(id) : undefined)\n',
    replace:
      '  const routingOf = (kind: IndexKind, id: string): string | undefined => (isRouted(kind) ? id : undefined)\n',
  },
  {
    name: 'a search asks the shard of another routing than that of the documents',
    inside: 'routedLayout',
    find: "        routing: org !== '' && some.every(isRouted) ? org : undefined,\n",
    replace: "        routing: org !== '' && some.every(isRouted) ? org && `${org}:` : undefined,\n",
  },
  {
    name: 'a search asks every shard, because its request lacks the routing',
    inside: 'createSearchClient',
    find: "      const routed = routing === undefined ? '' : `&routing=${routing}`\n",
    replace: "      const routed = routing === undefined ? '' : ''\n",
  },
  {
    name: 'a list of a routed generation has records of other kinds',
    inside: 'routedLayout',
    find: '        filters: [...(isOfKind ? [{ terms: { kind: some } }] : []), ...filtersOfOrg(org)],\n',
    replace: '        filters: [...(isOfKind ? [] : []), ...filtersOfOrg(org)],\n',
  },
  {
    name: 'a record of a routed generation is stored without its kind',
    inside: 'routedLayout',
    find: '    storedWith: kind => (isListKind(kind) ? `"kind":"${kind}",` : \'\'),\n',
    replace: "    storedWith: kind => (isListKind(kind) ? '' : ''),\n",
  },
  {
    name: 'the earlier form of a document is kept in another shard than the document',
    inside: 'routedLayout',
    find: '      routing: routingOf(kind, id) ?? id,\n',
    replace: '      routing: id,\n',
  },
  {
    name: 'a document that was found for removal is deleted without its routing',
    inside: 'findLeftovers',
    find: '{ _index, _id, _routing: routing, _version: version, _seq_no, _primary_term } = hit',
    replace: '{ _index, _id, _version: version, _seq_no, _primary_term } = hit\n        const routing = undefined',
  },
  {
    name: 'a decision of a routed generation compares a record with its kind',
    inside: 'draftOf',
    find: '  const { body_bytes: _, kind: __, ...draft } = stored\n',
    replace: '  const { body_bytes: _, ...draft } = stored\n',
  },
  {
    name: 'a generation is opened with the layout of new ones',
    inside: 'openGeneration',
    find: '  const indices = indicesOf(identity, steps)\n',
    replace: '  const indices = indicesOf({ ...identity, ...layoutOfNew(steps) }, steps)\n',
  },
  {
    name: 'a new generation does not store its layout',
    inside: 'prepareGeneration',
    find: '    const made = { generation, ...source, rules_version, ...layout }\n',
    replace: '    const made = { generation, ...source, rules_version }\n',
  },
  {
    name: 'two generations of different layouts are compared with what only one of them stores',
    inside: 'documentsOf',
    file: 'tools/documents/scan.ts',
    find: 'yield { id, source: ownFieldsOf(source) as Source }',
    replace: 'yield { id, source }',
  },
]
