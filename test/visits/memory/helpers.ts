/** The store of helpers in memory, with their links to visits. */
import type { Table, Undo } from '../../../client/src/memory/table.ts'
import type { Helper } from '../helpers/schema.ts'
import type { HelperStore } from '../helpers/store.ts'
import type { VisitRow } from './visits.ts'

export interface LinkRow {
  id: bigint
  visitId: bigint
  helperId: bigint
}

export function helpersInMemory(
  helpers: Table<Helper>,
  links: Table<LinkRow>,
  visits: Table<VisitRow>,
  undo?: Undo[],
): HelperStore {
  const linksOf = (of: Partial<LinkRow>) =>
    links.rows.filter(
      ({ visitId, helperId }) =>
        (of.visitId ?? visitId) === visitId && (of.helperId ?? helperId) === helperId,
    )
  const recount = (helper: Helper) => {
    helpers.update(helper, { visits: BigInt(linksOf({ helperId: helper.id }).length) }, undo)
  }
  return {
    get: async (_, id) => helpers.get(id),
    newHelper: {
      output: (id, { name }) => ({ id, name, visits: 0n }),
      insert: async (_, { name }) => helpers.insert({ name, visits: 0n }, undo),
    },
    async listVisits(_, { helperId, ...query }) {
      const ids = linksOf({ helperId }).map(({ visitId }) => visitId)
      return visits.page(query, { where: ({ id }) => ids.includes(id) })
    },
    async link(_, { visitId, helperId }) {
      const helper = helpers.get(helperId)
      if (!helper) return false
      if (linksOf({ visitId, helperId }).length === 0) links.insert({ visitId, helperId }, undo)
      recount(helper)
      return true
    },
    async unlink(_, { visitId, helperId }) {
      const helper = helpers.get(helperId)
      if (!helper) return false
      for (const link of linksOf({ visitId, helperId })) links.remove(link, undo)
      recount(helper)
      return true
    },
    idsOf: async (_, visitId) => linksOf({ visitId }).map(({ helperId }) => helperId),
    async removeSome(_, helperId) {
      const helper = helpers.get(helperId)
      for (const link of linksOf({ helperId })) links.remove(link, undo)
      if (helper) helpers.remove(helper, undo)
      return { isThere: helper !== undefined, isLast: true }
    },
  }
}
