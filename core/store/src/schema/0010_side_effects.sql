-- What a tool call did that no sandbox holds: a JSON list of words such as "network".
ALTER TABLE tool_calls ADD COLUMN side_effects TEXT NOT NULL DEFAULT '[]';
