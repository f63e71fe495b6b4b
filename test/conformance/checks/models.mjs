import { must } from "../outcome.mjs";

/** @type {import("../types.js").Check[]} */
export const models = [
  {
    id: "models.list",
    title: "GET /models lists models",
    async run({ target }) {
      /** @type {import("../types.js").ModelList} */
      const { data } = (await target.get("/models")).ok("modelList");
      must(data.length > 0, "the list is empty");
    },
  },
  {
    id: "models.retrieve",
    title: "GET /models/{id} gives what the list has",
    async run({ target }) {
      /** @type {import("../types.js").ModelList} */
      const { data } = (await target.get("/models")).ok("modelList");
      for (const listed of data.slice(0, 3)) {
        /** @type {import("../types.js").Model} */
        const model = (await target.get(`/models/${encodeURIComponent(listed.id)}`)).ok("model");
        must(JSON.stringify(model) === JSON.stringify(listed), `${JSON.stringify(model)} is not what the list has`);
      }
    },
  },
  {
    id: "models.unknown",
    title: "GET /models/{id} of an unknown model is a 404",
    async run({ target }) {
      (await target.get("/models/no-such-model-anywhere")).error(404);
    },
  },
];
