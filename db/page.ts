/** A page of a list. All lists are by id, so the id of the last row is the cursor of the next page. */

export interface Page<Item> {
  items: Item[]
  /** The cursor of the next page; undefined for the last page. */
  next: bigint | undefined
}

/** Returns the page from the rows of a query for `limit + 1` rows. */
export function pageOf<Row extends { id: bigint }>(rows: Row[], limit: number): Page<Row> {
  if (rows.length <= limit) return { items: rows, next: undefined }
  const items = rows.slice(0, limit)
  return { items, next: items.at(-1)?.id }
}
