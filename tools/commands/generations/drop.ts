/** `commission projection drop`: deletes a generation that is not live, or a sandbox. */
import { defineCommand } from '../../command.ts'
import { parseGenerationOrSandbox } from '../arguments.ts'

export default defineCommand({
  options: command =>
    command
      .argument('<generation>', 'its name', parseGenerationOrSandbox)
      .option('--json', 'what was dropped, as JSON'),
  asked: (generation: string, { json = false }: { readonly json?: boolean }) => ({ generation, json }),
  run: async ({ generation, json }, { readContext, kafkaContext, groupId, hasKafka }) => {
    const { dropSandbox, sandboxIn } = await import('../../generations/sandboxes.ts')
    const name = sandboxIn(generation)
    if (name === undefined) {
      return (await import('../../generations/drop.ts')).drop({ generation, json }, kafkaContext(), groupId())
    }
    // Without settings for Kafka: a sandbox from an archive.
    if (!hasKafka) return dropSandbox({ name, json }, readContext(), undefined)
    const context = kafkaContext()
    return dropSandbox({ name, json }, context, { kafka: context.kafka, groupId: groupId() })
  },
})
