/** Bugs in the names and types that generators of models and clients read: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

export const modelMutants: readonly Mutant[] = [
  {
    name: 'an object of an event has no name for generators of models',
    inside: 'named',
    find: '    ...(isNamed && { title }),\n',
    replace: '    ...(isNamed && !properties && { title }),\n',
  },
  {
    name: 'an enumeration of an event is a union of constants, of which generators make any type',
    inside: 'named',
    find: "    ...(constants && { type: 'string', enum: constants }),\n",
    replace: '    ...(constants && { anyOf }),\n',
  },
  {
    name: 'the schema of an event in a file of its own has no names',
    inside: 'portableSchemas',
    find: 'portableFields(named(schemaOfType[type], dataNameOf(type)))',
    replace: 'portableFields(named(schemaOfType[type], dataNameOf(type)) && schemaOfType[type])',
  },
  {
    name: 'the models of two versions of an event have one name',
    inside: 'portableSchemas',
    find: '    title: type,\n',
    replace: "    title: type.replace(/\\.v\\d+$/, ''),\n",
  },
  {
    name: 'a tag of the OpenAPI document has no description',
    inside: 'tags',
    find: '({ name, description })',
    replace: "(name === 'totals' ? { name } : { name, description })",
  },
  {
    name: 'the licence of the OpenAPI document has a name only: the generator for Java refuses the document',
    inside: 'license',
    find: ", identifier: 'LicenseRef-UNLICENSED'",
    replace: '',
  },
]
